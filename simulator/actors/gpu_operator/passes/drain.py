"""The whole node, but for DaemonSets and pods that carry the skip-drain label."""

from dataclasses import replace

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.filters import pick
from simulator.actors.gpu_operator.passes.base import Hands
from simulator.actors.gpu_operator.policy import Eviction, Policy
from simulator.actors.gpu_operator.snapshot import Snapshot
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.objects import Obj, name
from simulator.kinds import POD


def run(hands: Hands, snapshot: Snapshot, policy: Policy) -> None:
    for seen in snapshot.of(UpgradeState.DRAIN):
        if policy.drain is None:
            hands.acts.move(seen.node, UpgradeState.POD_RESTART)
        elif not hands.evictions.is_busy(name(seen.node)):
            _drain(hands, seen.node, _with_skip(policy.drain))


def _with_skip(rules: Eviction) -> Eviction:
    asked = [rules.selector] if rules.selector else []
    return replace(rules, selector=",".join([*asked, f"{keys.SKIP_DRAIN}!=true"]))


def _drain(hands: Hands, node: Obj, rules: Eviction) -> None:
    hands.acts.tell(node, "Scheduling drain of the node")
    hands.acts.cordon(node)
    picked = pick(hands.world[POD].by("node", name(node)), rules, lambda _: True)

    def ended(error: str) -> None:
        if error:
            hands.acts.move(node, UpgradeState.FAILED)
            hands.acts.warn(node, f"Failed to drain the node, {error}")
            return
        hands.acts.tell(node, "Successfully drained the node")
        hands.acts.move(node, UpgradeState.POD_RESTART)

    if picked.complaints:
        ended(picked.error())
    else:
        hands.evictions.start(name(node), picked.pods, rules, ended)
