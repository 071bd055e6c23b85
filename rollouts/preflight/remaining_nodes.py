"""The checks of the start, evaluated again for the nodes that a plan has still to change."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from fleet.models import DriverObject, Node
from operations.tenants.jobs import harm_of
from rollouts.checks import Check
from rollouts.lifecycle import TargetState
from rollouts.models import Stage, Target
from rollouts.preflight import checks_under_way
from rollouts.preflight.driver_facts import driver_facts
from rollouts.preflight.picks import Picks
from rollouts.preflight.subject import PreflightSubject
from rollouts.queries.completion import OVER
from rollouts.queries.driver_nodes import nodes_of, row_age
from rollouts.queries.sick_nodes import sick_nodes


@dataclass(frozen=True)
class Ahead:
    checks: list[Check]  # red ones first
    nodes: int  # unreleased nodes of this stage and later ones
    seen_at: datetime  # time of the oldest row
    stale_reason: str  # why that is not now; blank: it is


def ahead_of(stage: Stage, *, now: datetime) -> Ahead:
    """Returns the checks for unreleased nodes of the stage and later ones. As many queries as a preview."""
    plan = stage.plan
    stages = [one for one in _forward(stage) if one.state not in OVER]
    nodes = list(nodes_of(plan).prefetch_related("pools"))
    picks = _remaining_picks(stages, nodes, now=now)
    driver_object = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).first()
    looked = row_age(plan, now=now)
    found: list[Check] = []
    if driver_object is not None and picks.nodes:
        facts = driver_facts(plan, driver_object, nodes)
        found = checks_under_way(PreflightSubject(plan, stages, nodes, picks, facts, now))
    seen_at = looked.oldest if looked.stale_reason else now
    return Ahead(found, len(picks.nodes), seen_at, looked.stale_reason)


def _forward(stage: Stage) -> list[Stage]:
    later = stage.plan.stages.forward().filter(index__gte=stage.index)
    return list(later.select_related("pool").order_by("index"))


def _remaining_picks(stages: Sequence[Stage], nodes: Sequence[Node], *, now: datetime) -> Picks:
    by_uid = {node.uid: node for node in nodes}
    held = Target.objects.filter(stage__in=stages, state=TargetState.HELD).order_by("position")
    picks = Picks(sick=sick_nodes(nodes[0].cluster_id) if nodes else {})
    for index, uid in held.values_list("stage__index", "node_uid"):
        if uid in by_uid:
            picks.by_stage.setdefault(index, []).append(by_uid[uid])
    picks.harms = harm_of(nodes[0].cluster_id, picks.nodes, now=now) if nodes else {}
    return picks
