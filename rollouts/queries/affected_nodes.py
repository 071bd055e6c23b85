"""The nodes that a halted plan has harmed: failed ones, and those that a failing gate names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import Q

from edges.digests import digest
from fleet.models import Node
from gpu.upgrade_controller import UPGRADE_FAILED
from operations.pool_shares import shares_of
from rollouts.gates import GATES
from rollouts.gates.base import Answer
from rollouts.lifecycle import BEGUN, PlanState, TargetState
from rollouts.models import Cordon, GateAnswer, Plan, Target
from wording.lists import names
from wording.numbers import are, count


@dataclass(frozen=True)
class AffectedNode:
    uid: str
    name: str
    reason: str  # "failed", or the title of the gate that names it


@dataclass(frozen=True)
class AffectedNodes:
    to_cordon: tuple[AffectedNode, ...] = ()
    left_alone: tuple[AffectedNode, ...] = ()  # affected as well; each with the reason why no cordon is written
    pools: tuple[str, ...] = ()  # nodes in service before and after, a sentence for each pool

    @property
    def why_not(self) -> str:
        """Returns why there is nothing to cordon; empty if there is."""
        if self.to_cordon:
            return ""
        if self.left_alone:
            return f"No affected node can be cordoned: {_named(self.left_alone)}."
        return "No changed node failed, and no failing gate names one."

    @property
    def seen(self) -> str:
        """Returns a hash of all nodes to cordon, since the sentence names only the first."""
        return digest(sorted(node.uid for node in self.to_cordon))

    @property
    def says(self) -> str:
        if not self.to_cordon:
            return ""
        number = len(self.to_cordon)
        left = [f"Left alone: {_named(self.left_alone)}."] if self.left_alone else []
        cordons = f"{count(number, 'node')} {are(number)} cordoned: {_named(self.to_cordon)}."
        return " ".join([cordons, *left, *self.pools])


def _named(nodes: Sequence[AffectedNode]) -> str:
    return names([f"{node.name} ({node.reason})" for node in nodes], most=10)


def affected_nodes(plan: Plan) -> AffectedNodes:
    """Returns the affected nodes that have begun to change and still exist. Seven queries at most."""
    begun = Target.objects.forward().filter(stage__plan=plan, state__in=sorted(BEGUN))
    rows = begun.order_by("stage__index", "position")
    targets = list(rows.values_list("node_uid", "node_name", "state"))
    # A node that the halting gate named stays affected, also if the gate passes now.
    failing = GateAnswer.objects.filter(stage__plan=plan, answer=Answer.FAIL, is_advisory=False)
    failing = failing.filter(Q(is_current=True) | Q(rested_on_at=plan.state_since))
    named: dict[str, str] = {}
    for gate, nodes in failing.order_by("pk").values_list("gate", "nodes"):
        named |= {name: GATES[gate].title if gate in GATES else gate for name in nodes if name not in named}
    found = [
        AffectedNode(uid, name, "failed" if state == TargetState.FAILED else named[name])
        for uid, name, state in targets
        if state == TargetState.FAILED or name in named
    ]
    uids = [node.uid for node in found]
    mine = set(Cordon.objects.in_force().filter(plan=plan, node_uid__in=uids).values_list("node_uid", flat=True))
    nodes = {node.uid: node for node in Node.objects.filter(cluster=plan.cluster_id, uid__in=uids)}
    kept = {uid: reason for uid, node in nodes.items() if (reason := _why_left(node, is_mine=uid in mine))}
    present = [node for node in found if node.uid in nodes]
    free = tuple(node for node in present if node.uid not in kept)
    shares = shares_of(plan.cluster, [nodes[node.uid] for node in free]) if free else []
    return AffectedNodes(
        to_cordon=free,
        left_alone=tuple(replace(node, reason=kept[node.uid]) for node in present if node.uid in kept),
        pools=tuple(share.effect(leaves=True, returns=False) for share in shares if share.pool),
    )


def cordons_due(plan: Plan) -> dict[str, str]:
    """Returns the affected nodes (uid → name) that the engine has to cordon.

    Only a halt by a gate has some, of a plan with that option, and each node once in a halt. A node that somebody else
    cordoned is included: the write finds that out and records it.
    """
    if not plan.cordon_affected or plan.state != PlanState.HALTED:
        return {}
    fails = GateAnswer.objects.filter(stage__plan=plan, answer=Answer.FAIL, is_advisory=False)
    if not fails.filter(rested_on_at=plan.state_since).exists():
        return {}
    found = affected_nodes(plan)
    rows = Cordon.objects.filter(Q(ended_at=None) | Q(is_of_halt=True, wanted_since__gte=plan.state_since), plan=plan)
    decided = set(rows.values_list("node_uid", flat=True))
    return {node.uid: node.name for node in (*found.to_cordon, *found.left_alone) if node.uid not in decided}


def _why_left(node: Node, *, is_mine: bool) -> str:
    """Returns why no cordon is written; empty if one is.

    The operator itself cordons a node whose upgrade failed, and uncordons it by itself later.
    """
    if is_mine:
        return "cordoned by this plan"
    is_foreign = node.is_unschedulable and node.upgrade_state != UPGRADE_FAILED
    return "cordoned by somebody else" if is_foreign else ""
