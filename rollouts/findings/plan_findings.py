from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from fleet.models import Cluster, Node
from gpu.external_controllers import EXTERNAL_CONTROLLERS, Metadata, earlier_values
from gpu.labels import CORDONED_BY, EXCLUDED_BY, HELD_BY, HELD_SINCE, UPGRADE_SKIP, WAS_CORDONED
from health.evaluation.finding_sources import FindingSource
from health.rules.base import Problem, Severity
from rollouts.gates import GATES
from rollouts.gates.approval import ApprovalGate
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Cordon, Exclusion, GateOverride, Hold, Plan, Target, Verb
from rollouts.models.plan import MARK
from rollouts.models.plan_event import MISSED_GATE, OF_HALTS, SUSPECTS
from rollouts.queries.plan_view import failures_of_plans, halt_sentence
from wording.instants import to_the_minute
from wording.lists import names
from wording.numbers import count, was
from wording.reports import EvidenceItem, fit, instant

PUT_BACK_PATH = "'{.metadata.annotations.quarterdeck\\.io/put-back}'"


def halted_plans(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields a critical finding per halted plan. At most three queries, and four more per plan."""
    plans = list(Plan.objects.filter(cluster=cluster, state=PlanState.HALTED).order_by("pk"))
    failures = failures_of_plans(plans)
    for plan in plans:
        told = plan.commands.filter(verb=Verb.HALT, at=plan.state_since).first()
        reason = halt_sentence(plan, told, failures.get(plan.pk, ()))
        notes = plan.events.filter(to__in=OF_HALTS, at__gte=plan.state_since).order_by("pk")
        newest = {note.to: note for note in notes}
        lacked = newest[MISSED_GATE].reason if MISSED_GATE in newest else ""
        suspects = newest.get(SUSPECTS)
        ours = plan.cordons.in_force().filter(is_of_halt=True)
        cordoned = names(list(ours.values_list("node_name", flat=True)), most=10)
        progress = _progress_of_plan(plan)
        yield (
            f"plan {plan.pk}",
            Problem(
                severity=Severity.CRITICAL,
                title=fit("Plan #{} “{}” is halted", plan.pk, plan.title),
                summary=reason or progress,
                evidence=(
                    *((EvidenceItem("Reason", reason), EvidenceItem("Nodes", progress)) if reason else ()),
                    EvidenceItem("From version", plan.from_version or "unknown"),
                    EvidenceItem("To version", plan.to_version),
                    *(
                        (EvidenceItem(f"Suspects at {to_the_minute(suspects.at)}", suspects.reason),)
                        if suspects
                        else ()
                    ),
                    *((EvidenceItem("Gate that it lacked", lacked),) if lacked else ()),
                    *((EvidenceItem("Cordoned by the plan", cordoned),) if cordoned else ()),
                ),
                steps=_steps_after_halt(plan),
                facts={"plan": plan.pk},
                identity=f"{plan.pk} {reason} {progress} {plan.write_intended_at is None} {lacked} "
                f"{cordoned} {suspects.reason if suspects else ''}",
            ),
        )


def _steps_after_halt(plan: Plan) -> tuple[str, ...]:
    end = "If it does harm, roll the plan back." if plan.write_intended_at else "If it is not needed, abort the plan."
    return (*HALTED_STEPS, end, "If the reason of the halt is gone, resume the plan with a reason.")


def _progress_of_plan(plan: Plan) -> str:
    """Returns the state of the plan's nodes, without excluded ones."""
    targets = Target.objects.filter(stage__plan=plan).forward().exclude(state=TargetState.EXCLUDED)
    untouched = targets.filter(state=TargetState.HELD).count()
    released = targets.count() - untouched
    if not released:
        return "No node was released."
    of = count(released + untouched, "node")
    return f"{released} of {of} {was(released)} released. The cluster runs two versions."


def unacknowledged_overrides(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields overrides of gates until a second person has acknowledged them. One query."""
    rows = GateOverride.objects.filter(stage__plan__cluster=cluster, acknowledged_at=None).order_by("pk")
    for override in rows.select_related("stage__plan"):
        plan, is_approval = override.stage.plan, override.gate == ApprovalGate.key
        yield (
            f"override {override.pk}",
            Problem(
                severity=Severity.CRITICAL if is_approval else Severity.WARNING,
                title=fit("Gate {} of plan #{} “{}” overridden", GATES[override.gate].title, plan.pk, plan.title),
                summary="No second person has acknowledged the override yet.",
                evidence=(
                    EvidenceItem("Overridden by", override.by),
                    EvidenceItem("Reason", override.reason),
                    EvidenceItem("Stage", override.stage.name),
                    EvidenceItem("Gate result at the override", override.said or "none"),
                ),
                facts={"plan": plan.pk},
                identity=f"{override.by} {override.gate} {plan.pk} {override.stage.name} {override.reason}",
            ),
        )


def left_behind(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
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
            yield (
                f"node {name}",
                _leftover_problem(
                    plan,
                    name,
                    title="Hold of an ended plan on {}",
                    summary="The plan released the node, but its hold label stays. The operator changes nothing there.",
                    steps=(
                        "Check that no other plan holds the node. The node's page names the holder.",
                        f"Remove the label: kubectl label node {name} {UPGRADE_SKIP}-",
                        f"Remove the annotations: kubectl annotate node {name} {HELD_BY}- {HELD_SINCE}-",
                    ),
                ),
            )


def exclusions_left_behind(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields exclusions of ended plans. One query, and two more if there ever was one."""
    if not Exclusion.objects.filter(plan__cluster=cluster).exists():
        return
    for plan, name, annotations in _marked_by_plans_over(cluster, EXCLUDED_BY):
        off = earlier_values(Metadata({}, annotations))
        excluded = names([EXTERNAL_CONTROLLERS[key].title for key in off]) or "none any more"
        patch = f'kubectl patch node {name} --type=merge -p "$(kubectl get node {name} -o jsonpath={PUT_BACK_PATH})"'
        yield (
            f"node {name}",
            _leftover_problem(
                plan,
                name,
                title="Exclusion of an ended plan on {}",
                summary="The plan excluded the node from external controllers, and its marks stay.",
                steps=("Check that no other plan changes the node.", f"Restore the earlier values: {patch}"),
                evidence=(EvidenceItem("Excluded from", excluded),),
            ),
        )


def cordons_left_behind(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields cordons of ended plans on nodes whose test Job failed. Two queries if there ever was one."""
    if not Cordon.objects.filter(plan__cluster=cluster).exists():
        return
    for plan, name, _ in _marked_by_plans_over(cluster, CORDONED_BY):
        yield (
            f"node {name}",
            _leftover_problem(
                plan,
                name,
                title="Cordon of an ended plan on {}",
                summary="No test Job on the node has completed since its driver changed.",
                steps=(
                    "Open the plan. The line of the node has the last output of its test Job.",
                    "Repair the node, or roll its driver back. Check that no other plan changes it.",
                    f"Uncordon the node: kubectl uncordon {name}",
                    f"Remove the annotations: kubectl annotate node {name} {CORDONED_BY}- {WAS_CORDONED}-",
                ),
            ),
        )


def _leftover_problem(
    plan: Plan, node: str, *, title: str, summary: str, steps: tuple[str, ...], evidence: tuple[EvidenceItem, ...] = ()
) -> Problem:
    """Returns the problem of marks that an ended plan left on a node."""
    return Problem(
        severity=Severity.WARNING,
        title=fit(title, node),
        summary=summary,
        evidence=(
            EvidenceItem("Node", node),
            EvidenceItem("Plan", f"#{plan.pk} “{plan.title}”"),
            EvidenceItem("State of the plan", plan.state.replace("-", " ")),
            *evidence,
        ),
        steps=steps,
        facts={"plan": plan.pk, "node": node},
        identity=" ".join((node, str(plan.pk), plan.state, *(str(item.value) for item in evidence))),
    )


def _marked_by_plans_over(cluster: Cluster, annotation: str) -> Iterator[tuple[Plan, str, dict[str, str]]]:
    """Yields ended plans with the nodes that this annotation assigns to them. Two queries."""
    over = {plan.mark: plan for plan in Plan.objects.filter(cluster=cluster) if plan.is_final}
    marked = Node.objects.filter(cluster=cluster, annotations__has_key=annotation).order_by("name")
    for name, annotations in marked.values_list("name", "annotations"):
        if plan := over.get(annotations[annotation]):
            yield plan, name, annotations


def cordons_removed(cluster: Cluster, *, now: datetime) -> Iterator[tuple[str, Problem]]:  # noqa: ARG001
    """Yields nodes that accepted pods for a moment before their test (Z7). One query.

    The driver manager's own uncordon does not count: without a driver no pod can have a GPU yet.
    """
    rows = Cordon.objects.in_force().filter(plan__cluster=cluster).order_by("node_name")
    for name, removed_at, plan_id in rows.values_list("node_name", "removed_at", "plan"):
        if removed_at is None:
            continue
        yield (
            f"node {name}",
            Problem(
                severity=Severity.WARNING,
                title=fit("{} was uncordoned before its test Job completed", name),
                summary="The plan cordoned the node again. Pods may have started on it in between.",
                evidence=(EvidenceItem("Node", name), instant("Cordoned again", removed_at)),
                facts={"plan": plan_id, "node": name},
                identity=f"{name} {plan_id} {to_the_minute(removed_at)}",
            ),
        )


def page_of_plan(facts: Mapping[str, Any]) -> str:
    return reverse("plan", args=[facts["plan"]])


HALTED_STEPS = (
    "Open the plan. It shows the gate or the person that halted it, and the state of each node.",
    "Check the findings and GPU stacks of the released nodes for harm by the new version.",
)
HALTED = FindingSource(
    "plan-halted",
    "Plan halted",
    timedelta(0),
    halted_plans,
    "A plan is halted. It releases nothing until a person decides.",
    page_of_plan,
    (
        *HALTED_STEPS,
        "If it does harm, roll the plan back. If no node was released, abort it.",
        "If the reason of the halt is gone, resume the plan with a reason.",
    ),
)
LEFT_BEHIND = FindingSource(
    "hold-left-behind",
    "Hold left behind",
    timedelta(minutes=2),
    left_behind,
    "A node carries the hold of an ended plan that released it. The operator changes nothing there.",
    steps=(
        "Check that no other plan holds the node. The node's page names the holder.",
        "Remove the label and the annotations by the commands of the finding.",
    ),
)
EXCLUSION_LEFT = FindingSource(
    "exclusion-left-behind",
    "Exclusion left behind",
    timedelta(minutes=2),
    exclusions_left_behind,
    "A node carries the mark by which an ended plan excluded it from NVSentinel or an autoscaler.",
    steps=(
        "Check that no other plan changes the node.",
        "Restore the earlier values by the command of the finding.",
    ),
)
CORDON_LEFT = FindingSource(
    "cordon-left-behind",
    "Cordon left behind",
    timedelta(minutes=2),
    cordons_left_behind,
    "A node whose test Job failed is still cordoned by an ended plan.",
    page_of_plan,
    (
        "Open the plan. The line of the node has the last output of its test Job.",
        "Repair the node, or roll its driver back. Check that no other plan changes it.",
        "Uncordon the node and remove the annotations by the commands of the finding.",
    ),
)
CORDON_TAKEN = FindingSource(
    "plan-cordon-removed",
    "Cordon of a plan removed",
    timedelta(0),
    cordons_removed,
    "A node was uncordoned before its test Job completed. The plan cordoned it again.",
    page_of_plan,
    (
        "Check the pods that started on the node since. They run on an untested driver.",
        "Ask who uncordoned the node, and why. To skip the test, override the gate Test Job on the plan's page.",
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
        "Check whether the gate still fails. If the plan should not have continued, halt it.",
        "Acknowledge the override on the plan's page.",
    ),
)
