"""The suspects of a plan: what its failed nodes share and its good nodes lack."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Max

from fleet.models import Node, Pod
from fleet.racks import place_values
from gpu.images import cuda_of
from health.evaluation.node_properties import PLACES
from health.suspects import NodeOutcome, Suspects, suspects_of
from operations.models import DomainBudget
from rollouts.gates.base import Answer
from rollouts.gates.test_job import TestJobGate
from rollouts.gates.workloads_ready import WorkloadsReady
from rollouts.lifecycle import BEGUN, TargetState
from rollouts.models import Plan, Stage, Target
from rollouts.node_order.node_selection import FACTORS
from rollouts.queries.tested_nodes import has_run_since, newest_tests

ABOUT_WORKLOADS = frozenset(
    {WorkloadsReady.key, TestJobGate.key}
)  # a node without a workload tells nothing about these
MORE = {"nvlink_domain": "NVLink domain", "kubelet_version": "kubelet"}  # column of a node: no kind of nodes to test
NEWEST = 20  # plans of a cluster that may explain why nodes fail
CLOCKS_DIFFER = timedelta(minutes=5)  # at most, of the API server and of a worker
ENDED = (TargetState.FAILED, TargetState.CHANGED)
OF_PODS = ("node_name", "image", "required_cuda", "is_ready")
COLUMNS = ("node_uid", "node_name", "state", "state_since", "facts", "tenants_ready_at")


def plan_suspects(plan: Plan, stages: Sequence[Stage]) -> Suspects | None:
    """Returns the suspects among the plan's nodes; None if no node failed. At most seven queries.

    Nodes count as failed by their state, or if a failing gate names them. A node that failed before it took a new pod
    of the driver tells nothing about the driver. If workloads failed, a node counts as good only if another workload
    has passed there, and the images of the tenants' pods are properties too. `stages` have their gate results and
    targets loaded.
    """
    forward = [stage for stage in stages if not stage.is_rollback]
    failing = [
        answer
        for stage in forward
        for answer in stage.answers.all()
        if answer.answer == Answer.FAIL and not answer.is_advisory
    ]
    named = {name for answer in failing for name in answer.nodes}
    targets = [target for stage in forward for target in stage.targets.all()]
    if not named and not any(target.state == TargetState.FAILED for target in targets):
        return None
    needs_work = any(answer.gate in ABOUT_WORKLOADS and answer.nodes for answer in failing)
    tests = newest_tests(plan.pk) if needs_work else {}
    changed = Target.objects.forward().filter(stage__plan=plan, state__in=ENDED).exclude(pk__in=_untried(plan, targets))
    outcomes, places = [], _places(plan)
    images = _images(plan) if needs_work else None
    for uid, name, state, since, facts, tenants_ready_at in changed.order_by("position").values_list(*COLUMNS):
        failed = state == TargetState.FAILED or name in named
        if failed or not needs_work or has_run_since(since, tenants_ready_at, tests.get(uid)):
            properties: dict[str, str | frozenset[str]] = {title: facts.get(key, "") for key, title in FACTORS.items()}
            properties |= places.get(uid, {})
            properties |= images.of(name, failed=failed) if images else {}
            outcomes.append(NodeOutcome(name, failed, properties))
    return suspects_of(outcomes) if any(outcome.failed for outcome in outcomes) else None


def _untried(plan: Plan, targets: Iterable[Target]) -> list[int]:
    """Returns the keys of failed targets whose driver pod is from before their release, such as of a refused drain."""
    failed = [one for one in targets if one.state == TargetState.FAILED and one.released_at]
    if not failed:
        return []
    names = [target.node_name for target in failed]
    pods = Pod.objects.filter(
        cluster=plan.cluster_id, node_name__in=names, operand=plan.its_component.operand, deleted_at=None
    ).not_done()
    begun = dict(pods.order_by("created_at").values_list("node_name", "created_at"))  # the newest of each node
    return [
        one.pk
        for one in failed
        if one.released_at and begun.get(one.node_name, one.released_at) < one.released_at - CLOCKS_DIFFER
    ]


def _places(plan: Plan) -> dict[str, dict[str, str]]:
    """Returns the location of each node by UID."""
    ended = Target.objects.forward().filter(stage__plan=plan, state__in=ENDED).values("node_uid")
    places = place_values(plan.cluster_id, named=DomainBudget.rack_label(plan.cluster_id))
    rows = Node.objects.filter(cluster=plan.cluster_id, uid__in=ended).annotate(**places).order_by()
    columns = {**MORE, **PLACES}
    return {
        uid: {title: value for title, value in zip(columns.values(), values, strict=True) if value}
        for uid, *values in rows.values_list("uid", *columns)
    }


def plans_of_nodes(cluster_id: int) -> dict[str, str]:
    """Returns the newest plan that began to change each node, of the last plans of a cluster, by UID. One query.

    Without titles: whoever sees a node may not see all plans.
    """
    newest = Plan.objects.filter(cluster=cluster_id).order_by("-pk").values("pk")[:NEWEST]
    begun = Target.objects.filter(stage__plan__in=newest, state__in=sorted(BEGUN)).order_by()
    found = begun.values("node_uid").annotate(newest=Max("stage__plan"))
    return {uid: str(plan) for uid, plan in found.values_list("node_uid", "newest")}


@dataclass
class _Images:
    """The images of the tenants' pods on nodes now, each with its CUDA version; blank if that is unknown."""

    ready: dict[str, dict[str, str]]  # by name of the node
    unready: dict[str, dict[str, str]]

    def of(self, node: str, *, failed: bool) -> dict[str, str | frozenset[str]]:
        """Returns the images that fail on a failed node, or run on a good one. Blank: no such pod is there now."""
        found = (self.unready if failed else self.ready).get(node, {})
        is_known = bool(found) and all(found.values())
        return {
            "image": frozenset(found) or "",
            "CUDA of the image": frozenset(found.values()) if is_known else "",
        }


def _images(plan: Plan) -> _Images:
    ended = Target.objects.forward().filter(stage__plan=plan, state__in=ENDED).values("node_name")
    pods = Pod.objects.filter(cluster=plan.cluster_id, node_name__in=ended, deleted_at=None).tenants().not_done()
    found = _Images(defaultdict(dict), defaultdict(dict))
    for name, image, required, is_ready in pods.order_by().values_list(*OF_PODS):
        (found.ready if is_ready else found.unready)[name][image] = cuda_of(image, required)
    return found
