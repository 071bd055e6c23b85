"""The nodes that each stage takes, and the excluded ones."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fleet.models import Node
from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from kube import selectors
from operations.tenants.disruption_cost import Harm
from operations.tenants.jobs import harm_of
from rollouts.models import Plan, Stage
from rollouts.node_order.node_selection import Candidate, in_order, representatives
from rollouts.queries.driver_nodes import candidate, is_held_by_others
from rollouts.queries.sick_nodes import sick_nodes


@dataclass
class Picks:
    """The nodes of each stage, in the order of release."""

    by_stage: dict[int, list[Node]] = field(default_factory=dict)  # stage index → nodes
    excluded: list[tuple[str, str]] = field(default_factory=list)
    uncovered: list[Node] = field(default_factory=list)
    sick: Mapping[str, Sequence[str]] = field(default_factory=dict)  # uid → sentences of findings that call it sick
    left_out_sick: list[Node] = field(default_factory=list)  # no stage takes them, but with a reason
    harms: Mapping[str, Harm] = field(default_factory=dict)  # node name → present harm of a drain
    candidates: Mapping[str, Candidate] = field(default_factory=dict)  # node UID → candidate

    @property
    def nodes(self) -> list[Node]:
        return [node for nodes in self.by_stage.values() for node in nodes]


def pick(stages: Iterable[Stage], nodes: Sequence[Node], *, now: datetime) -> Picks:
    """Assigns the object's nodes to stages; the first stage that matches takes a node. Five queries."""
    harms = harm_of(nodes[0].cluster_id, nodes, now=now) if nodes else {}
    picks = Picks(harms=harms, sick=sick_nodes(nodes[0].cluster_id) if nodes else {})
    left = {node.uid: node for node in nodes if not _why_excluded(node)}
    picks.candidates = {uid: candidate(node, picks.harms[node.name]) for uid, node in left.items()}
    picks.excluded = [(node.name, why) for node in nodes if (why := _why_excluded(node))]
    for stage in stages:
        there = [uid for uid, node in left.items() if stage_takes_node(stage, node)]
        candidates = [picks.candidates[uid] for uid in there if stage.sick_nodes_reason or uid not in picks.sick]
        chosen = in_order(candidates) if stage.count is None else representatives(candidates, stage.count)
        picks.by_stage[stage.index] = [left.pop(one.uid) for one in chosen]
    picks.uncovered = [node for uid, node in left.items() if uid not in picks.sick]
    picks.left_out_sick = [node for uid, node in left.items() if uid in picks.sick]
    picks.excluded += [(node.name, f"open finding: {picks.sick[node.uid][0]}") for node in picks.left_out_sick]
    return picks


def _why_excluded(node: Node) -> str:
    """Returns why a node is excluded, such as a foreign cordon: the operator would take it beyond its slots (Z6)."""
    if node.is_unschedulable:
        return "cordoned by somebody else"
    if is_held_by_others(node):
        return "held by somebody else"
    return "brings its own driver" if node.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED else ""


def stage_takes_node(stage: Stage, node: Node) -> bool:
    if stage.pool_id is not None and all(pool.pk != stage.pool_id for pool in node.pools.all()):
        return False
    return selectors.parse(stage.selector).matches(node.labels)


def forward(plan: Plan) -> list[Stage]:
    return list(plan.stages.forward().select_related("pool"))
