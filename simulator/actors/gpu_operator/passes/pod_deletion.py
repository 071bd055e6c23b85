"""Evicts the pods that use GPUs. If even one may not be deleted, none is: the node drains or fails."""

from simulator.actors.dra.holding import holds_devices
from simulator.actors.gpu_operator.filters import pick
from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Seen, Snapshot
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import Obj, name, phase
from simulator.kinds import POD
from simulator.quantities import wants_gpu

DRAIN_INSTEAD = "Pod deletion failed but drain is enabled in spec. Will attempt a node drain"


def uses_gpu(hands: Hands, pod: Obj) -> bool:
    """Up to 26.3 those who hold GPUs by claims are missed, and the driver stays in use."""
    if phase(pod) not in ("Running", "Pending"):
        return False
    return wants_gpu(pod) or (hands.is_26_7 and holds_devices(hands.world, pod))


def run(hands: Hands, snapshot: Snapshot, policy: Policy) -> None:
    for seen in snapshot.of(UpgradeState.POD_DELETION):
        if not hands.evictions.is_busy(name(seen.node)):
            _evict(hands, seen, policy)


def _evict(hands: Hands, seen: Seen, policy: Policy) -> None:
    node, pods = seen.node, hands.world[POD].by("node", name(seen.node))
    to_go = [pod for pod in pods if uses_gpu(hands, pod)]
    if not to_go:
        hands.acts.move(node, UpgradeState.POD_RESTART)
        return
    picked = pick(pods, policy.pod_deletion, lambda pod: uses_gpu(hands, pod))
    if len(picked.pods) != len(to_go):
        _give_up(hands, node, policy)
        return

    def ended(error: str) -> None:
        if error:
            hands.acts.warn(node, f"Failed to delete workload pods on the node for the driver upgrade, {error}")
            _give_up(hands, node, policy)
            return
        hands.acts.move(node, UpgradeState.POD_RESTART)
        hands.acts.tell(node, "Deleted workload pods on the node for the driver upgrade")

    hands.evictions.start(name(node), picked.pods, policy.pod_deletion, ended)


def _give_up(hands: Hands, node: Obj, policy: Policy) -> None:
    if policy.drain is None:
        hands.acts.move(node, UpgradeState.FAILED)
        return
    hands.acts.warn(node, DRAIN_INSTEAD)
    hands.acts.move(node, UpgradeState.DRAIN)
