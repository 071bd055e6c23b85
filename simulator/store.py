"""The cluster's etcd and the rules around it: every write gets the next version, every watch hears of it.

Objects are plain dicts that nobody changes once they are stored; lists, watches and the log share them.
"""

import threading
from collections.abc import Iterable
from typing import Any

from simulator import definitions, deletion, eviction, patches, rules, schema, shapes
from simulator.clock import Clock
from simulator.cursor import Cursor
from simulator.defaults import filled
from simulator.events import Change, ChangeLog, EventType, Record, Watch
from simulator.kinds import BUILT_IN, DEFINITION, NAMESPACE, POD, Kind
from simulator.matching import matcher, within
from simulator.refusals import Refused, already_exists, bad_request, conflict, forbidden, not_found, path_not_found
from simulator.shelf import ANY_VERSION, Matches, Page, Shelf, Token
from simulator.validation import check

__all__ = ["Refused", "Store"]

Obj = dict[str, Any]
FIRST_VERSION = 1000


class Store:
    def __init__(self, clock: Clock | None = None, kinds: tuple[Kind, ...] = BUILT_IN) -> None:
        self.clock = clock or Clock()
        self.lock = threading.RLock()
        self.version = FIRST_VERSION
        self.kinds: dict[tuple[str, str, str], Kind] = {}
        self.shelves: dict[tuple[str, str], Shelf] = {}
        for kind in kinds:
            self._serve(kind)
        for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
            self.create(NAMESPACE, {"metadata": {"name": name}})

    def _serve(self, kind: Kind) -> None:
        self.kinds[kind.group, kind.version, kind.plural] = kind
        self.shelves.setdefault(kind.shelf, Shelf(kind, ChangeLog(self.version)))

    def find_kind(self, group: str, version: str, plural: str) -> Kind:
        kind = self.kinds.get((group, version, plural))
        if kind is None:
            raise path_not_found()
        return kind

    def shelf(self, kind: Kind) -> Shelf:
        shelf = self.shelves.get(kind.shelf)
        if shelf is None:
            raise path_not_found()
        return shelf

    def restore(self, objects: Iterable[tuple[tuple[str, str, str], Obj]], *, version: int) -> None:
        """Hold exactly these, by the kinds they were kept as; definitions come first. What was before is forgotten."""
        with self.lock:
            for shelf in self.shelves.values():
                shelf.empty()
            for names, obj in objects:
                kind = self.find_kind(*names)
                self.shelf(kind).place(Record(obj, int(obj["metadata"]["resourceVersion"])))
                if kind is DEFINITION:
                    for served in definitions.kinds_of(obj):
                        self._serve(served)
            self.version = version
            self.expire()

    # Reading

    def record(self, kind: Kind, name: str, namespace: str = "") -> Record:
        key = f"{namespace}/{name}" if kind.namespaced else name
        record = self.shelf(kind).records.get(key)
        if record is None:
            raise not_found(kind, name)
        return record

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return self.record(kind, name, namespace).obj

    def page(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        matches: Matches | None = None,
        limit: int = 0,
        token: Token | None = None,
    ) -> Page:
        with self.lock:
            start = token or Token(ANY_VERSION, "")
            return self.shelf(kind).page(self.version, namespace=namespace, matches=matches, limit=limit, token=start)

    def list(
        self,
        kind: Kind,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
    ) -> tuple[list[Obj], str, str]:
        matches = matcher(kind, label_selector, field_selector)
        token = Token.decode(continue_) if continue_ else None
        page = self.page(kind, namespace, matches=matches, limit=limit, token=token)
        return [record.obj for record in page.records], str(page.version), page.continue_

    # Writing

    def create(self, kind: Kind, obj: Obj, namespace: str = "", *, dry_run: bool = False) -> Obj:
        with self.lock:
            self._open_namespace(kind, obj, namespace)
            return self._add(kind, obj, namespace, keep_status=False, dry_run=dry_run)

    def seed(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj:
        """Place an object that was there before anybody looked: its status, uid and age are kept."""
        with self.lock:
            self._open_namespace(kind, obj, namespace)
            return self._add(kind, obj, namespace, keep_status=True, dry_run=False)

    def _open_namespace(self, kind: Kind, obj: Obj, namespace: str) -> None:
        if not kind.namespaced:
            return
        if not namespace:
            raise bad_request("an empty namespace may not be set during creation")
        held = self.get(NAMESPACE, namespace)
        if held["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(kind, rules.name_of(obj), why)

    def _add(self, kind: Kind, obj: Obj, namespace: str, *, keep_status: bool, dry_run: bool) -> Obj:
        shapes.check(kind, obj)
        now = self.clock.now()
        new = self._filled(kind, rules.born(kind, obj, namespace=namespace, now=now, keep_status=keep_status))
        rules.check_metadata(kind, new)
        check(self, kind, new, None)
        name = new["metadata"]["name"]
        if (f"{namespace}/{name}" if kind.namespaced else name) in self.shelf(kind).records:
            raise already_exists(kind, name)
        if kind is DEFINITION:
            new = definitions.established(new, now)
        return self._keep(kind, new, dry_run=dry_run)

    def update(
        self, kind: Kind, name: str, obj: Obj, namespace: str = "", subresource: str = "", *, dry_run: bool = False
    ) -> Obj:
        with self.lock:
            shapes.check(kind, obj)
            return self._revise(kind, self.get(kind, name, namespace), obj, subresource=subresource, dry_run=dry_run)

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        how: str,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Obj:
        with self.lock:
            old = self.get(kind, name, namespace)
            new = patches.patched(kind, old, patch, how=how)
            shapes.check(kind, new, is_patched=True)
            return self._revise(kind, old, new, subresource=subresource, dry_run=dry_run)

    def _revise(self, kind: Kind, old: Obj, new: Obj, *, subresource: str, dry_run: bool) -> Obj:
        revised = rules.revised(kind, old, new, subresource=subresource)
        if subresource != "status":
            revised = self._filled(kind, revised)
        if revised == old:
            return old
        rules.check_metadata(kind, revised, old)
        check(self, kind, revised, old)
        if deletion.is_due(revised):
            return revised if dry_run else self.remove(kind, revised)
        return self._keep(kind, revised, dry_run=dry_run)

    def _filled(self, kind: Kind, obj: Obj) -> Obj:
        if not kind.is_custom:
            return filled(kind, obj)
        record = self.shelf(DEFINITION).records.get(f"{kind.plural}.{kind.group}")
        of_version = definitions.schema_of(record.obj, kind.version) if record else {}
        return schema.pruned(of_version, obj) if of_version else obj

    def _keep(self, kind: Kind, obj: Obj, *, dry_run: bool = False) -> Obj:
        if dry_run:
            return obj
        self.version += 1
        record = Record(obj, self.version).at_version(self.version)
        self.shelf(kind).put(record)
        if kind is DEFINITION:
            for served in definitions.kinds_of(record.obj):
                self._serve(served)
        return record.obj

    def remove(self, kind: Kind, last: Obj) -> Obj:
        """Take an object off its shelf: nothing holds it any more."""
        self.version += 1
        record = Record(last, self.version).at_version(self.version)
        self.shelf(kind).drop(record)
        deletion.follow_up(self, kind, record.obj)
        return record.obj

    def mark(self, kind: Kind, obj: Obj) -> Obj:
        """Store what the server itself decided, past the rules for clients."""
        return self._keep(kind, obj)

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        dry_run: bool = False,
    ) -> Obj:
        with self.lock:
            old = self.get(kind, name, namespace)
            deletion.require(kind, old, uid=uid, resource_version=resource_version)
            return old if dry_run else deletion.delete(self, kind, old, grace_s=grace_s, propagation=propagation)

    def evict(
        self,
        pod_name: str,
        namespace: str,
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> None:
        with self.lock:
            pod = self.get(POD, pod_name, namespace)
            deletion.require(POD, pod, uid=uid, resource_version=resource_version)
            eviction.evict(self, pod, grace_s=grace_s, dry_run=dry_run)

    def bind(self, pod: str, namespace: str, node_name: str) -> None:
        with self.lock:
            held = self.get(POD, pod, namespace)
            if held["metadata"].get("deletionTimestamp"):
                raise conflict(POD, pod, f"pod {pod} is being deleted, cannot be assigned to a host")
            if held["spec"].get("nodeName"):
                raise conflict(POD, pod, f'pod {pod} is already assigned to node "{held["spec"]["nodeName"]}"')
            self.mark(POD, eviction.scheduled(held, node_name, self.clock.now()))

    # Watching

    def cursor(self, kind: Kind, namespace: str = "", *, matches: Matches | None = None, since: str) -> Cursor:
        """:raises Refused: 410 when `since` is forgotten."""
        with self.lock:
            shelf = self.shelf(kind)
            if since not in ("", "0"):
                shelf.log.after(int(since))
                return Cursor(self, shelf, within(namespace, matches), int(since), [])
            page = self.page(kind, namespace, matches=matches)
            initial = [Change(EventType.ADDED, record, None) for record in page.records]
            return Cursor(self, shelf, within(namespace, matches), page.version, initial)

    def watch(
        self, kind: Kind, namespace: str = "", label_selector: str = "", field_selector: str = "", *, since: str
    ) -> Watch:
        cursor = self.cursor(kind, namespace, matches=matcher(kind, label_selector, field_selector), since=since)
        stirred = threading.Event()
        stop = cursor.on_change(stirred.set)

        def read() -> list[Change]:
            stirred.clear()
            return cursor.read()

        def close() -> None:
            stop()
            stirred.set()

        return Watch(read, stirred.wait, close)

    def expire(self) -> None:
        """Forget the past: old watches, and lists half read, get 410."""
        with self.lock:
            self.version += 1
            for shelf in self.shelves.values():
                shelf.log.forget(self.version)
                for listener in shelf.listeners:
                    listener()
