"""The preview of a rollback: the nodes that change back, their waves and GPU pods, and its duration."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.freshness.cluster import why_unseen
from fleet.models import DriverObject
from kube.resources import PODS
from operations.ledger.disruptions import read_budgets
from rollouts.commands.duration import StageTime, duration_of
from rollouts.commands.remaining_time import times_so_far
from rollouts.lifecycle import PlanState
from rollouts.models import StageKind
from rollouts.node_order.node_selection import at_once
from rollouts.preflight.driver_facts import tenants_on
from rollouts.preflight.rollback import nodes_to_roll_back
from rollouts.queries.driver_nodes import nodes_of, upgrade_policy
from rollouts.queries.plan_view import PlanOnPage
from rollouts.verbs import VERBS
from wording.lists import names
from wording.numbers import count


@dataclass(frozen=True)
class RollbackPreview:
    nodes: tuple[str, ...]  # by name
    waves: int
    at_once: int
    gpu_pods: int | None  # of tenants, on these nodes; None: pods are not seen
    takes_s: float
    lines: tuple[str, ...]  # sentences for a person

    @property
    def sentence(self) -> str:
        return " ".join(self.lines)


def rollback_preview(on_page: PlanOnPage, *, now: datetime) -> RollbackPreview | None:
    """Returns the preview; None if the plan cannot roll back, or its object is gone. Twelve queries at most."""
    plan = on_page.plan
    if PlanState(plan.state) not in VERBS["rollback"].states:
        return None
    stage = next((one.stage for one in on_page.stages if one.stage.kind == StageKind.ROLLBACK), None)
    driver_object = DriverObject.objects.filter(cluster=plan.cluster_id, uid=plan.object_uid).first()
    if driver_object is None or stage is None:
        return None
    nodes = tuple(sorted(nodes_to_roll_back(on_page)))
    if not nodes:
        nothing = f"No node differs from {plan.from_version}: the version is restored and every hold is removed."
        return RollbackPreview((), 0, 0, 0, 0.0, (nothing,))
    budgets = read_budgets(plan.cluster_id, nodes, is_rollback=True)
    limit = at_once(stage.max_unavailable, nodes, upgrade_policy(driver_object), budgets, fleet=nodes_of(plan).count())
    waves = len(limit.by_wave)
    back = StageTime(len(nodes), limit.nodes, timedelta(), is_asked=False, in_waves=waves)
    duration = duration_of([back], took=times_so_far(on_page))
    pods = None if why_unseen(plan.cluster_id, PODS.name, now=now) else len(tenants_on(plan.cluster_id, nodes))
    lines = (
        f"Rolls {count(len(nodes), 'node')} back to {plan.from_version}: {names(nodes, most=5)}.",
        f"{count(waves, 'wave')}. {limit.reason}",
        "GPU pods on them are not seen." if pods is None else f"{count(pods, 'GPU pod')} of tenants on them will stop.",
        duration.sentence,
    )
    return RollbackPreview(nodes, waves, limit.nodes, pods, duration.takes_s, lines)
