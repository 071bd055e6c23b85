"""Who may start. The skip label is asked before the slots; a node that is cordoned already needs no slot."""

from simulator.actors.gpu_operator import keys, slots
from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Seen, Snapshot
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.gpu_operator.template import digest_of
from simulator.actors.objects import annotations, is_unschedulable, labels


def run(hands: Hands, snapshot: Snapshot, policy: Policy) -> None:
    free = slots.available(snapshot, policy)
    for seen in snapshot.of(UpgradeState.REQUIRED):
        is_requested = annotations(seen.node).get(keys.REQUESTED) == "true"
        if is_requested:
            hands.acts.annotate(seen.node, keys.REQUESTED, None)
        if labels(seen.node).get(keys.SKIP) == "true":
            continue
        if free <= 0 and not is_unschedulable(seen.node):
            continue
        _start(hands, seen, is_requested=is_requested)
        free -= 1


def _start(hands: Hands, seen: Seen, *, is_requested: bool) -> None:
    if not (hands.is_26_7 and not is_requested and _is_restart_only(seen)):
        hands.acts.move(seen.node, UpgradeState.CORDON)
        return
    hands.acts.cordon(seen.node)
    hands.acts.move(seen.node, UpgradeState.POD_RESTART)


def _is_restart_only(seen: Seen) -> bool:
    """The driver itself does not change: its pod is replaced under running workloads."""
    if seen.daemon_set is None or annotations(seen.node).get(keys.SAFE_LOAD):
        return False
    digest = digest_of(seen.pod["spec"])
    return digest != "" and digest == digest_of(seen.daemon_set["spec"]["template"]["spec"])
