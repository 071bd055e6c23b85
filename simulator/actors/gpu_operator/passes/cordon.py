from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Snapshot
from simulator.actors.gpu_operator.states import UpgradeState


def run(hands: Hands, snapshot: Snapshot, _policy: Policy) -> None:
    for seen in snapshot.of(UpgradeState.CORDON):
        hands.acts.cordon(seen.node)
        hands.acts.move(seen.node, UpgradeState.WAIT_FOR_JOBS)
