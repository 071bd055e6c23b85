"""A failed node whose driver pod is well after all goes on, and nobody validates it again."""

from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.passes.pod_restart import is_settled
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Snapshot
from simulator.actors.gpu_operator.states import UpgradeState


def run(hands: Hands, snapshot: Snapshot, _policy: Policy) -> None:
    for seen in snapshot.of(UpgradeState.FAILED):
        if is_settled(seen):
            hands.acts.leave(seen.node)
