"""What every actor holds: the mirrors, the loop, and writes that show in the mirrors at once."""

from typing import Any

from simulator.actors.cache import Cache
from simulator.actors.cluster import Cluster, How
from simulator.actors.events import Recorder
from simulator.actors.journal import Journal
from simulator.actors.loop import Loop
from simulator.actors.mirror import Mirror
from simulator.actors.objects import Obj, controller_uid, name, namespace, node_of, uid
from simulator.kinds import POD, Kind
from simulator.refusals import Refused


class World:
    def __init__(self, cluster: Cluster, loop: Loop, kinds: tuple[Kind, ...]) -> None:
        self.cluster = cluster
        self.loop = loop
        self.caches = {kind: Cache() for kind in kinds}
        self.mirrors = [Mirror(cluster, kind, cache) for kind, cache in self.caches.items()]
        self.journal = Journal()
        self.events = Recorder(cluster, loop)
        for cache in self.caches.values():
            cache.index("controller", controller_uid)
            cache.index("node", node_of)

    def __getitem__(self, kind: Kind) -> Cache:
        return self.caches[kind]

    def fill(self) -> None:
        for mirror in self.mirrors:
            mirror.fill()

    def create(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj:
        made = self.cluster.create(kind, obj, namespace)
        self._show(kind, made)
        return made

    def patch(
        self, kind: Kind, obj: Obj, patch: Any, *, how: How = "merge", subresource: str = "", manager: str = ""
    ) -> Obj:
        written = self.cluster.patch(
            kind, name(obj), patch, namespace(obj), how=how, subresource=subresource, manager=manager
        )
        self._show(kind, written)
        return written

    def patch_status(self, kind: Kind, obj: Obj, status: Obj) -> Obj:
        return self.patch(kind, obj, {"status": status}, subresource="status")

    def delete(self, kind: Kind, obj: Obj, *, grace_s: int | None = None) -> None:
        """Gone already, or another of the same name by now: as good as deleted."""
        try:
            self.cluster.delete(kind, name(obj), namespace(obj), grace_s=grace_s, uid=uid(obj))
        except Refused as refusal:
            if refusal.status not in (404, 409):
                raise

    def bind(self, pod: Obj, node_name: str) -> None:
        """The binding answers with a Status, so the pod is read back: the node's room is taken before the next pass."""
        self.cluster.bind(name(pod), namespace(pod), node_name)
        self._show(POD, self.cluster.get(POD, name(pod), namespace(pod)))

    def _show(self, kind: Kind, obj: Obj) -> None:
        cache = self.caches.get(kind)
        if cache is not None:
            cache.take("MODIFIED", obj)
