"""Leases and node status, as kubelets renew them. They keep the wall's time: a fast cluster is not a louder one."""

from datetime import datetime

from simulator.actors.objects import Obj, name, status, uid
from simulator.actors.world import World
from simulator.clock import micro_stamp, stamp
from simulator.kinds import LEASE, NODE
from simulator.refusals import Refused

LEASE_NAMESPACE = "kube-node-lease"
LEASE_S = 10  # nodeLeaseDurationSeconds 40, renewed every quarter of it
STATUS_S = 300  # nodeStatusReportFrequency
LEASES_A_SECOND = 20  # at most: nothing here reads them, so a large fleet renews less often


class Heartbeats:
    def __init__(self, world: World) -> None:
        self._world = world
        self._with_lease: set[str] = set()
        self._is_silent: set[str] = set()

    def start(self) -> None:
        """Nodes take turns, so that the writes come evenly."""
        self._turn_lease(0)
        self._turn_status(0)

    def silence(self, node_name: str, *, is_silent: bool) -> None:
        (self._is_silent.add if is_silent else self._is_silent.discard)(node_name)

    def _turn_lease(self, index: int) -> None:
        nodes = self._nodes()
        gap_s = max(LEASE_S / max(1, len(nodes)), 1 / LEASES_A_SECOND)
        self._world.loop.later(gap_s * self._speed, self._turn_lease, index + 1)
        node = nodes[index % len(nodes)] if nodes else None
        if node and name(node) not in self._is_silent:
            self._world.loop.soon(self._renew, name(node))

    def _turn_status(self, index: int) -> None:
        nodes = self._nodes()
        self._world.loop.later(STATUS_S / max(1, len(nodes)) * self._speed, self._turn_status, index + 1)
        node = nodes[index % len(nodes)] if nodes else None
        if node and name(node) not in self._is_silent:
            self._world.loop.soon(self._beat, name(node))

    def _beat(self, node_name: str) -> None:
        node = self._world[NODE].get(node_name)
        if node is not None:
            at = stamp(self._world.loop.clock.now())
            beats = [{"type": each["type"], "lastHeartbeatTime": at} for each in status(node).get("conditions") or ()]
            self._world.patch(NODE, node, {"status": {"conditions": beats}}, how="strategic", subresource="status")

    def _renew(self, node_name: str) -> None:
        node, now = self._world[NODE].get(node_name), self._world.loop.clock.now()
        if node is None:
            return
        if name(node) in self._with_lease:
            self._world.cluster.patch(LEASE, name(node), {"spec": {"renewTime": micro_stamp(now)}}, LEASE_NAMESPACE)
            return
        try:
            self._world.cluster.create(LEASE, _lease(node, now), LEASE_NAMESPACE)
        except Refused as refusal:
            if refusal.status != 409:
                raise
        self._with_lease.add(name(node))

    def _nodes(self) -> list[Obj]:
        return list(self._world[NODE].all())

    @property
    def _speed(self) -> float:
        return self._world.loop.clock.speed


def _lease(node: Obj, now: datetime) -> Obj:
    owner = {"apiVersion": "v1", "kind": "Node", "name": name(node), "uid": uid(node)}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name(node), "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
        "spec": {"holderIdentity": name(node), "leaseDurationSeconds": 40, "renewTime": micro_stamp(now)},
    }
