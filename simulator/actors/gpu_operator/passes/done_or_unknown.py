"""Is the driver pod still of the newest revision? Asked of idle nodes only, never again once a node waits."""

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Seen, Snapshot
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import annotations, is_unschedulable


def run(hands: Hands, snapshot: Snapshot, _policy: Policy) -> None:
    for state in (UpgradeState.UNKNOWN, UpgradeState.DONE):
        for seen in snapshot.of(state):
            if _needs_upgrade(seen):
                # Written first: this node stays cordoned when all is done.
                if is_unschedulable(seen.node):
                    hands.acts.annotate(seen.node, keys.WAS_CORDONED, "true")
                hands.acts.move(seen.node, UpgradeState.REQUIRED)
            elif state is UpgradeState.UNKNOWN:
                hands.acts.move(seen.node, UpgradeState.DONE)


def _needs_upgrade(seen: Seen) -> bool:
    said = annotations(seen.node)
    is_requested = said.get(keys.REQUESTED) == "true"
    return (not seen.is_in_sync and not seen.is_orphan) or bool(said.get(keys.SAFE_LOAD)) or is_requested
