"""The actors inside the simulator's own process: the store itself, without HTTP and outside the request log."""

from typing import Any

from simulator.actors.cluster import How, Stream
from simulator.actors.objects import Obj
from simulator.kinds import Kind
from simulator.store import Store


class StoreCluster:
    def __init__(self, store: Store) -> None:
        self.store = store

    def get(self, kind: Kind, name: str, namespace: str = "") -> Obj:
        return self.store.get(kind, name, namespace)

    def list(self, kind: Kind) -> tuple[list[Obj], str]:
        listed, version, _ = self.store.list(kind)
        return listed, version

    def watch(self, kind: Kind, *, since: str) -> Stream:
        return self.store.watch(kind, since=since)

    def create(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj:
        return self.store.create(kind, obj, namespace)

    def seed(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj:
        return self.store.seed(kind, obj, namespace)

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        how: How = "merge",
        subresource: str = "",
        manager: str = "",
    ) -> Obj:
        return self.store.patch(kind, name, patch, namespace, how=how, subresource=subresource, manager=manager)

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        grace_s: int | None = None,
        uid: str | None = None,
    ) -> None:
        self.store.delete(kind, name, namespace, grace_s=grace_s, uid=uid)

    def evict(self, name: str, namespace: str, *, uid: str | None = None) -> None:
        self.store.evict(name, namespace, uid=uid)

    def bind(self, name: str, namespace: str, node_name: str) -> None:
        self.store.bind(name, namespace, node_name)
