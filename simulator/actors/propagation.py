"""Deletion as the client wished it: dependants first, or left behind without an owner."""

from functools import partial

from simulator.actors.garbage import DEPENDANTS
from simulator.actors.objects import Obj, is_terminating, name, namespace, owners, uid
from simulator.actors.world import World
from simulator.kinds import Kind

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class Propagation:
    def __init__(self, world: World, owner_kinds: tuple[Kind, ...]) -> None:
        self._world = world
        self._owner_kinds = owner_kinds
        for kind in owner_kinds:
            world[kind].on_change(partial(self._owner_changed, kind))
        for kind in DEPENDANTS:
            world[kind].on_change(self._dependant_changed)

    def settle(self, kind: Kind, owner_uid: str) -> None:
        owner = self._world[kind].of_uid(owner_uid)
        if owner is None or not is_terminating(owner):
            return
        wishes = owner["metadata"].get("finalizers") or []
        held = [(each, obj) for each in DEPENDANTS for obj in self._world[each].by("owner", owner_uid)]
        if ORPHAN in wishes:
            for each, obj in held:
                self._disown(each, obj, owner_uid)
            self._let_go(kind, owner, ORPHAN)
        elif FOREGROUND in wishes and not held:
            self._let_go(kind, owner, FOREGROUND)
        elif FOREGROUND in wishes:
            for each, obj in held:
                if not is_terminating(obj):
                    self._world.delete(each, obj)

    def _disown(self, kind: Kind, obj: Obj, owner_uid: str) -> None:
        others = [owner for owner in owners(obj) if owner["uid"] != owner_uid]
        self._world.patch(kind, obj, {"metadata": {"ownerReferences": others or None}})

    def _let_go(self, kind: Kind, owner: Obj, finalizer: str) -> None:
        """Not through `patch` of the world: the answer may be the last state of an object that is gone."""
        others = [wish for wish in owner["metadata"]["finalizers"] if wish != finalizer]
        change = {"metadata": {"finalizers": others or None}}
        self._world.cluster.patch(kind, name(owner), change, namespace(owner), how="merge")

    def _owner_changed(self, kind: Kind, _was: Obj | None, owner: Obj | None) -> None:
        if owner is not None and is_terminating(owner):
            self._world.loop.soon(self.settle, kind, uid(owner))

    def _dependant_changed(self, was: Obj | None, obj: Obj | None) -> None:
        if was is None or obj is not None:
            return
        for owner in owners(was):
            for kind in self._owner_kinds:
                if self._world[kind].of_uid(owner["uid"]):
                    self._world.loop.soon(self.settle, kind, owner["uid"])
