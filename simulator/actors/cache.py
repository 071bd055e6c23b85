"""A mirror of one kind, as an informer keeps it: own writes show at once, stale news is dropped."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

from simulator.actors.objects import Key, Obj, key, uid, version

Listener = Callable[[Obj | None, Obj | None], None]  # was, is
Indexer = Callable[[Obj], Hashable]


class Cache:
    def __init__(self) -> None:
        self.objects: dict[Key, Obj] = {}
        self._by_uid: dict[str, Obj] = {}
        self._indexers: dict[str, Indexer] = {}
        self._indexes: dict[str, dict[Hashable, dict[Key, Obj]]] = {}
        self._listeners: list[Listener] = []

    def index(self, called: str, of: Indexer) -> None:
        """Objects whose value is falsy are left out."""
        self._indexers[called] = of
        self._indexes[called] = defaultdict(dict)
        for obj in self.objects.values():
            self._enter(called, obj)

    def on_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def get(self, name: str, namespace: str = "") -> Obj | None:
        return self.objects.get((namespace, name))

    def of_uid(self, uid: str) -> Obj | None:
        return self._by_uid.get(uid)

    def all(self) -> Iterable[Obj]:
        return self.objects.values()

    def by(self, called: str, value: Hashable) -> list[Obj]:
        return list(self._indexes[called].get(value, {}).values())

    def take(self, event: str, obj: Obj) -> None:
        was = self.objects.get(key(obj))
        if event == "DELETED":
            if was and uid(was) == uid(obj):
                self._drop(was)
                self._tell(was, None)
            return
        if was and uid(was) == uid(obj) and version(was) >= version(obj):
            return
        if was and uid(was) != uid(obj):
            self._drop(was)
            self._tell(was, None)
            was = None
        self._keep(was, obj)
        self._tell(was, obj)

    def replace(self, listed: list[Obj]) -> None:
        """A whole list after a watch was lost: what is not in it is gone."""
        still = {key(obj) for obj in listed}
        for gone in [obj for at, obj in self.objects.items() if at not in still]:
            self.take("DELETED", gone)
        for obj in listed:
            self.take("MODIFIED", obj)

    def _keep(self, was: Obj | None, obj: Obj) -> None:
        if was:
            self._drop(was)
        self.objects[key(obj)] = obj
        self._by_uid[uid(obj)] = obj
        for called in self._indexers:
            self._enter(called, obj)

    def _enter(self, called: str, obj: Obj) -> None:
        value = self._indexers[called](obj)
        if value:
            self._indexes[called][value][key(obj)] = obj

    def _drop(self, obj: Obj) -> None:
        self.objects.pop(key(obj), None)
        self._by_uid.pop(uid(obj), None)
        for called, of in self._indexers.items():
            shelf = self._indexes[called].get(of(obj))
            if shelf is not None:
                shelf.pop(key(obj), None)
                if not shelf:
                    del self._indexes[called][of(obj)]

    def _tell(self, was: Obj | None, now: Obj | None) -> None:
        for listener in self._listeners:
            listener(was, now)
