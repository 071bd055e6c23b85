"""Which nodes each stage takes, and which are left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from fleet.models import Node
from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from kube import selectors
from rollouts.models import Plan, Stage
from rollouts.ordering.harm import Harm
from rollouts.ordering.picking import Candidate, in_order, representatives
from rollouts.reads.jobs import harm_of
from rollouts.reads.queries import candidate, is_held_by_others


@dataclass
class Picks:
    """Which nodes each stage takes, in the order of release."""

    by_stage: dict[int, list[Node]] = field(default_factory=dict)  # stage index → nodes
    excluded: list[tuple[str, str]] = field(default_factory=list)
    uncovered: list[Node] = field(default_factory=list)
    harms: Mapping[str, Harm] = field(default_factory=dict)  # node's name → what it takes with it, as things are now
    candidates: Mapping[str, Candidate] = field(default_factory=dict)  # node's uid → it, of those that may be taken

    @property
    def nodes(self) -> list[Node]:
        return [node for nodes in self.by_stage.values() for node in nodes]


def pick(stages: Iterable[Stage], nodes: Sequence[Node], *, now: datetime) -> Picks:
    """Hand the object's nodes out to the stages. A node goes to the first stage that takes it. Four queries."""
    picks = Picks(harms=harm_of(nodes[0].cluster_id, nodes, now=now) if nodes else {})
    left = {node.uid: node for node in nodes if not _why_excluded(node)}
    picks.candidates = {uid: candidate(node, picks.harms[node.name]) for uid, node in left.items()}
    picks.excluded = [(node.name, why) for node in nodes if (why := _why_excluded(node))]
    for stage in stages:
        candidates = [picks.candidates[uid] for uid, node in left.items() if takes(stage, node)]
        chosen = in_order(candidates) if stage.count is None else representatives(candidates, stage.count)
        picks.by_stage[stage.index] = [left.pop(one.uid) for one in chosen]
    picks.uncovered = list(left.values())
    return picks


def _why_excluded(node: Node) -> str:
    """Cordoned by others: the operator would take it past its own slots, and it is not ours to uncordon (Z6)."""
    if node.is_unschedulable:
        return "cordoned by somebody else"
    if is_held_by_others(node):
        return "held by somebody else"
    return "brings its own driver" if node.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED else ""


def takes(stage: Stage, node: Node) -> bool:
    if stage.pool_id is not None and all(pool.pk != stage.pool_id for pool in node.pools.all()):
        return False
    return selectors.parse(stage.selector).matches(node.labels)


def forward(plan: Plan) -> list[Stage]:
    return list(plan.stages.forward().select_related("pool"))
