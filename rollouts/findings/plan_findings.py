from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from fleet.models import Cluster, Node
from gpu.external_controllers import EXTERNAL_CONTROLLERS, Metadata, earlier_values
from gpu.labels import CORDONED_BY, EXCLUDED_BY, HELD_BY, HELD_SINCE, UPGRADE_SKIP, WAS_CORDONED
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Severity, Wrong
from rollouts.gates import GATES
from rollouts.gates.approval import ApprovalGate
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Cordon, Exclusion, GateOverride, Hold, Plan, Target, Verb
from rollouts.models.plan import MARK
from wording.instants import to_the_minute
from wording.lists import names
from wording.numbers import are, count, was

PUT_BACK_PATH = "'{.metadata.annotations.quarterdeck\\.io/put-back}'"


def halted_plans(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Wrong]]:  # noqa: ARG001
    """Yields a critical finding per halted plan. One query, and three more per plan."""
    for plan in Plan.objects.filter(cluster=cluster, state=PlanState.HALTED).order_by("pk"):
        told = plan.commands.filter(verb=Verb.HALT, at=plan.state_since).first()
        last = plan.events.filter(to=PlanState.HALTED).order_by("-pk").first()
        reason = told.sentence if told else last.reason if last else ""
        yield (
            f"plan {plan.pk}",
            Wrong(
                Severity.CRITICAL,
                f"Plan #{plan.pk} “{plan.title}” is halted{f': {reason}' if reason else '.'} {_how_far(plan)}",
                f"Open the plan: {'roll it back' if plan.write_intended_at else 'abort it'}, or say why it is resumed.",
                {"plan": plan.pk, "from": plan.from_version, "to": plan.to_version},
            ),
        )


def _how_far(plan: Plan) -> str:
    """Returns the state of the plan's nodes, without excluded ones."""
    targets = Target.objects.filter(stage__plan=plan).forward().exclude(state=TargetState.EXCLUDED)
    untouched = targets.filter(state=TargetState.HELD).count()
    released = targets.count() - untouched
    if not released:
        return "No node was released."
    return (
        f"{released} of {count(released + untouched, 'node')} {was(released)} released: the cluster runs two versions."
    )


def unacknowledged_overrides(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Wrong]]:  # noqa: ARG001
    """Yields overrides of gates until a second person has acknowledged them. One query."""
    rows = GateOverride.objects.filter(stage__plan__cluster=cluster, acknowledged_at=None).order_by("pk")
    for override in rows.select_related("stage__plan"):
        plan, is_approval = override.stage.plan, override.gate == ApprovalGate.key
        where = f"{override.stage.name} of plan #{plan.pk} “{plan.title}”"
        yield (
            f"override {override.pk}",
            Wrong(
                Severity.CRITICAL if is_approval else Severity.WARNING,
                f"{override.by} overrode the gate {GATES[override.gate].title} in {where}: {override.reason}",
                f"Somebody other than {override.by} acknowledges it on the plan's page.",
                {"plan": plan.pk, "stage": override.stage.name, "gate": override.gate, "it said": override.said},
            ),
        )


def left_behind(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Wrong]]:  # noqa: ARG001
    """Yields hold labels of ended plans, which a late write can leave. One query, and three more with held nodes."""
    held = Node.objects.filter(cluster=cluster, is_held=True, held_by__startswith=MARK).order_by("name")
    by_uid = {node.uid: (node.name, node.held_by) for node in held.only("uid", "name", "held_by")}
    if not by_uid:
        return
    plans = {plan.mark: plan for plan in Plan.objects.filter(cluster=cluster) if plan.is_final}
    rows = Hold.objects.filter(plan__in=plans.values(), node_uid__in=by_uid, is_wanted=True).select_related("plan")
    wanted = {(row.node_uid, row.plan.mark) for row in rows}
    for uid, (name, mark) in by_uid.items():
        if mark in plans and (uid, mark) not in wanted:
            plan = plans[mark]
            state = plan.state.replace("-", " ")
            yield (
                f"node {name}",
                Wrong(
                    Severity.WARNING,
                    f"{name} carries the hold of plan #{plan.pk} “{plan.title}”, which is {state} and let it go: "
                    "the operator changes nothing there.",
                    f"Take it off: kubectl label node {name} {UPGRADE_SKIP}- "
                    f"&& kubectl annotate node {name} {HELD_BY}- {HELD_SINCE}-",
                    {"plan": plan.pk, "node": name},
                ),
            )


def exclusions_left_behind(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Wrong]]:  # noqa: ARG001
    """Yields exclusions of ended plans. One query, and two more if there ever was one."""
    if not Exclusion.objects.filter(plan__cluster=cluster).exists():
        return
    for plan, name, annotations in _marked_by_plans_over(cluster, EXCLUDED_BY):
        off = earlier_values(Metadata({}, annotations))
        who = names([EXTERNAL_CONTROLLERS[key].title for key in off]) or "Nobody any more"
        yield (
            f"node {name}",
            Wrong(
                Severity.WARNING,
                f"{who} {are(len(off) or 1)} kept off {name} by plan #{plan.pk} “{plan.title}”, which is "
                f"{plan.state.replace('-', ' ')}.",
                "Put back what was there: kubectl patch node "
                f'{name} --type=merge -p "$(kubectl get node {name} -o jsonpath={PUT_BACK_PATH})"',
                {"plan": plan.pk, "node": name},
            ),
        )


def cordons_left_behind(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Wrong]]:  # noqa: ARG001
    """Yields cordons of ended plans on nodes whose test Job failed. Two queries if there ever was one."""
    if not Cordon.objects.filter(plan__cluster=cluster).exists():
        return
    for plan, name, _ in _marked_by_plans_over(cluster, CORDONED_BY):
        yield (
            f"node {name}",
            Wrong(
                Severity.WARNING,
                f"{name} is cordoned by plan #{plan.pk} “{plan.title}”, which is {plan.state.replace('-', ' ')}: "
                "no test Job there has completed since its driver changed.",
                "See what the test Job said on the page of the plan. Once the node is mended: kubectl uncordon "
                f"{name} && kubectl annotate node {name} {CORDONED_BY}- {WAS_CORDONED}-",
                {"plan": plan.pk, "node": name},
            ),
        )


def _marked_by_plans_over(cluster: Cluster, annotation: str) -> Iterator[tuple[Plan, str, dict[str, str]]]:
    """Yields ended plans with the nodes that this annotation assigns to them. Two queries."""
    over = {plan.mark: plan for plan in Plan.objects.filter(cluster=cluster) if plan.is_final}
    marked = Node.objects.filter(cluster=cluster, annotations__has_key=annotation).order_by("name")
    for name, annotations in marked.values_list("name", "annotations"):
        if plan := over.get(annotations[annotation]):
            yield plan, name, annotations


def cordons_removed(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Wrong]]:  # noqa: ARG001
    """Yields nodes that accepted pods for a moment before their test (Z7). One query.

    The driver manager's own uncordon does not count: without a driver no pod can have a GPU yet.
    """
    rows = Cordon.objects.in_force().filter(plan__cluster=cluster).order_by("node_name")
    for name, removed_at, plan_id in rows.values_list("node_name", "removed_at", "plan"):
        if removed_at is None:
            continue
        yield (
            f"node {name}",
            Wrong(
                Severity.WARNING,
                f"{name} was uncordoned before its test Job had completed, and was cordoned again at "
                f"{to_the_minute(removed_at)}: pods may have come to it.",
                "Look which pods have started there since, and ask who uncordoned it.",
                {"plan": plan_id, "node": name},
            ),
        )


def page_of_plan(evidence: Mapping[str, Any]) -> str:
    return reverse("plan", args=[evidence["plan"]])


HALTED = FindingSource(
    "plan-halted",
    "Plan halted",
    timedelta(0),
    halted_plans,
    "A plan is halted: nothing of it goes until a person decides.",
    page_of_plan,
    (
        "Open the plan: its page says which gate or which person halted it, and where each of its nodes stands.",
        "Check the findings and GPU stacks of the released nodes for harm by the new version.",
        "Roll it back if there is harm. Abort it if no node was released yet. Give a reason.",
        "Resume it where what halted it is over, and say so.",
    ),
)
LEFT_BEHIND = FindingSource(
    "hold-left-behind",
    "Hold left behind",
    timedelta(minutes=2),
    left_behind,
    "A node carries the hold of a plan that is over and let it go: the operator changes nothing there.",
    steps=(
        "Look that the plan is over, and that no other one holds the node: its page says whose hold it is.",
        "Take the label and the annotations off, by the two commands of the action.",
    ),
)
EXCLUSION_LEFT = FindingSource(
    "exclusion-left-behind",
    "Exclusion left behind",
    timedelta(minutes=2),
    exclusions_left_behind,
    "A node carries the label or annotation by which a plan that is over kept NVSentinel or an autoscaler off it.",
    steps=(
        "Look that the plan is over, and that no other one works on the node.",
        "Put back what was there before, by the command of the action.",
    ),
)
CORDON_LEFT = FindingSource(
    "cordon-left-behind",
    "Cordon left behind",
    timedelta(minutes=2),
    cordons_left_behind,
    "A node whose test Job failed is cordoned still, by a plan that is over.",
    page_of_plan,
    (
        "Open the plan: the line of the node has what its test Job said last.",
        "Mend the node, or roll its driver back; look that no other plan works on it.",
        "Uncordon it, and take the annotation off, by the two commands of the action.",
    ),
)
CORDON_TAKEN = FindingSource(
    "cordon-removed",
    "Cordon removed",
    timedelta(0),
    cordons_removed,
    "A node that takes no pods until its test Job has completed was uncordoned, and is cordoned again.",
    page_of_plan,
    (
        "Look which pods have started on the node since: they run on a driver that nothing has tested yet.",
        "Where a person uncordoned it, ask why: passing over the gate Test Job on the page of the plan does the same.",
    ),
)
UNACKNOWLEDGED_OVERRIDES = FindingSource(
    "gate-overridden",
    "Gate overridden",
    timedelta(0),
    unacknowledged_overrides,
    "One person overrode a gate. No second person has acknowledged it yet.",
    page_of_plan,
    (
        "Open the plan as another person. The page shows the gate's result at the override.",
        "Look whether it still says so, and halt the plan where it should not have gone on.",
        "Say on the page of the plan that you have seen it.",
    ),
)
