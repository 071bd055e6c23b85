"""Plans as drafts; nothing here touches a cluster."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F

from fleet.models import ApprovalRule, Cluster, DriverObject, Pool
from fleet.pools.approval_rules import rule_of
from people.models import AuditEntry, User
from rollouts.approvals.automatic_approvals import GATE
from rollouts.checks import Check
from rollouts.commands.draft_problems import check
from rollouts.commands.duration import Duration
from rollouts.commands.refusals import BadPlan, OutOfDate
from rollouts.commands.stage_drafts import StageDraft, gates_by_default
from rollouts.components import DRIVER_OBJECT_KINDS
from rollouts.lifecycle import PlanState, StageState
from rollouts.models import Plan, Stage, StageKind
from rollouts.models.transitions import record_event
from rollouts.queries.driver_nodes import nodes_of
from rollouts.queries.pool_gates import ClusterGates, gates_in
from wording.instants import moment
from wording.numbers import count


def with_approvals(cluster: Cluster, stages: Sequence[StageDraft]) -> list[StageDraft]:
    """Returns the stages, each with an approval unless it may go without. One query."""
    pools = {pool.pk: pool for pool in Pool.objects.filter(cluster=cluster)}
    return [
        stage
        if GATE in stage.gate_options or _may_leave_out(cluster, pools.get(stage.pool_id or 0))
        else replace(stage, gate_options={GATE: {}, **stage.gate_options})
        for stage in stages
    ]


def _may_leave_out(cluster: Cluster, pool: Pool | None) -> bool:
    if pool is None:
        return cluster.approval == ApprovalRule.NONE
    return rule_of(cluster, pool) == ApprovalRule.NONE and not pool.is_production


# Gates of the rollback stage. No approval: the plan's approval covers it (hazard Z32).
GATES_BACK: Mapping[str, dict[str, Any]] = {
    "driver_version": {},
    "operands_ready": {},
    "validator_passed": {},
    "allocatable_restored": {},
    "mig_state": {},
    "workloads_ready": {},
    "failure_budget": {"tolerate": 0},
}
CANARIES = 2
LONGEST_TITLE = 200


def draft(
    *,
    cluster: Cluster,
    title: str,
    driver_object: DriverObject,
    to_version: str,
    stages: Sequence[StageDraft],
    cordon_affected: bool = False,
    actor: User,
    document: str = "",
    now: datetime,
) -> Plan:
    """Creates a draft. A stage that needs an approval and names none gets one.

    `document` is the digest of the document that it comes from; empty if written by hand.

    :raises BadPlan: with each field that is wrong
    """
    with transaction.atomic():
        stages = _checked(cluster, to_version, stages)
        if driver_object.kind not in DRIVER_OBJECT_KINDS:
            raise BadPlan(
                ("driver_object", f"A {driver_object.kind} has no driver version, so a plan cannot change it.")
            )
        plan = unsaved(cluster, title, driver_object, to_version, actor=actor, now=now)
        plan.cordon_affected = cordon_affected
        plan.save(force_insert=True)
        _write_stages(plan, stages, now=now)
        _record_in_audit(plan, "draft", actor=actor, document=document, now=now)
    return plan


def unsaved(
    cluster: Cluster, title: str, driver_object: DriverObject, to_version: str, *, actor: User, now: datetime
) -> Plan:
    """Returns a plan without a row."""
    return Plan(
        cluster=cluster,
        title=title.strip() or title_for(driver_object, to_version),
        object_kind=driver_object.kind,
        object_name=driver_object.name,
        object_uid=driver_object.uid,
        from_version=driver_object.version,
        to_version=to_version.strip(),
        state=PlanState.DRAFT,
        state_since=now,
        author=actor.get_username(),
        last_editor=actor.get_username(),
        created_at=now,
        edited_at=now,
        lease_until=now,
    )


def title_for(driver_object: DriverObject, to_version: str) -> str:
    """Returns a default title. A long name is cut, since the version distinguishes plans."""
    to = f" to {to_version}"
    return f"{driver_object.name[: LONGEST_TITLE - len(to)]}{to}"


def edit(
    plan: Plan,
    *,
    title: str,
    to_version: str,
    stages: Sequence[StageDraft],
    cordon_affected: bool | None = None,
    expected_revision: int,
    actor: User,
    document: str = "",
    now: datetime,
) -> Plan:
    """Edits a draft; `cordon_affected` None keeps what it is.

    :raises OutOfDate: when it is no draft any more, or somebody has edited it since
    :raises BadPlan: with each field that is wrong
    """
    same = Plan.objects.filter(pk=plan.pk, state=PlanState.DRAFT, revision=expected_revision)
    with transaction.atomic():
        stages = _checked(plan.cluster, to_version, stages)
        changed = same.update(
            title=title.strip() or plan.title,
            to_version=to_version.strip(),
            cordon_affected=plan.cordon_affected if cordon_affected is None else cordon_affected,
            last_editor=actor.get_username(),
            edited_at=now,
            waiting_for="",  # a start that was not made was of the draft as it was
            revision=F("revision") + 1,
        )
        if not changed:
            plan.refresh_from_db()
            raise OutOfDate(f"{_other_edit_sentence(plan, now=now)} Read it again before you change it.")
        plan.stages.all().delete()
        plan.refresh_from_db()
        _write_stages(plan, stages, now=now)
        _record_in_audit(plan, "edit", actor=actor, document=document, now=now)
    return plan


def _checked(cluster: Cluster, to_version: str, stages: Sequence[StageDraft]) -> list[StageDraft]:
    """Returns the stages with default approvals, and locks their pools.

    :raises BadPlan: as `check`
    """
    list(Pool.objects.select_for_update(no_key=True).filter(cluster=cluster).order_by("pk").values_list("pk"))
    check(cluster, to_version, stages)
    return with_approvals(cluster, stages)


def _other_edit_sentence(plan: Plan, *, now: datetime) -> str:
    """Returns a sentence about the other edit; it may be the same person's in another tab."""
    if plan.state != PlanState.DRAFT:
        return f"The plan is {plan.state.replace('-', ' ')}, so it is no longer a draft."
    at = moment(plan.edited_at, now=now)
    return f"{plan.last_editor} has changed this draft since you opened it, at {at}."


def discard(plan: Plan, *, actor: User, reason: str, now: datetime) -> None:
    """Discards a draft.

    :raises IllegalMove: when it has started
    """
    with transaction.atomic():
        plan.move(PlanState.DISCARDED, now=now, actor=actor.get_username(), reason=reason or "Not needed.")
        AuditEntry.record(plan.mark, verb="discard", actor=actor.get_username(), reason=reason, now=now)


def stages_of(plan: Plan) -> list[StageDraft]:
    return [
        StageDraft(
            name=stage.name,
            kind=stage.kind,
            pool_id=stage.pool_id,
            selector=stage.selector,
            count=stage.count,
            max_unavailable=stage.max_unavailable,
            timeout_s=stage.timeout_s,
            sick_nodes_reason=stage.sick_nodes_reason,
            gate_options=stage.gate_options,
        )
        for stage in plan.stages.forward()
    ]


def suggest_stages(driver_object: DriverObject) -> list[StageDraft]:
    """Returns a representative canary, then each pool of the object, then the nodes without a pool."""
    nodes = list(nodes_of(driver_object).prefetch_related("pools"))
    inside = {pool.pk: pool for node in nodes for pool in node.pools.all()}
    default = ClusterGates(
        {key: given for key, given in gates_in(driver_object.cluster).by_pool.items() if key in inside}
    )
    stages = [StageDraft("Canary", StageKind.CANARY, count=min(CANARIES, max(1, len(nodes) - 1)), max_unavailable=1)]
    stages += [
        StageDraft(pool.name, StageKind.POOL, pool_id=pool.pk, max_unavailable=pool.max_unavailable)
        for pool in sorted(inside.values(), key=lambda pool: pool.name)
    ]
    if any(not node.pools.all() for node in nodes):
        stages.append(StageDraft("Nodes in no pool", StageKind.POOL))
    return [
        replace(stage, gate_options=default.usual_of(pool, gates_by_default(driver_object.cluster_id, pool)))
        for stage in stages
        for pool in [stage.pool_id]
    ]


def stage_rows(plan: Plan, stages: Sequence[StageDraft], *, now: datetime) -> list[Stage]:
    return [
        Stage(
            plan=plan,
            index=index,
            name=stage.name.strip(),
            kind=stage.kind,
            pool_id=stage.pool_id,
            selector=stage.selector,
            count=stage.count,
            max_unavailable=stage.max_unavailable,
            timeout_s=stage.timeout_s,
            sick_nodes_reason=stage.sick_nodes_reason.strip(),
            gate_options={key: dict(options) for key, options in stage.gate_options.items()},
            state=StageState.WAITING,
            state_since=now,
        )
        for index, stage in enumerate(stages)
    ]


def _write_stages(plan: Plan, stages: Sequence[StageDraft], *, now: datetime) -> None:
    rows = stage_rows(plan, stages, now=now)
    widest = max(stage.max_unavailable for stage in stages)
    longest = max(stage.timeout_s for stage in stages)
    rows.append(
        Stage(
            plan=plan,
            index=len(rows),
            name="Rollback",
            kind=StageKind.ROLLBACK,
            max_unavailable=widest,
            timeout_s=longest,
            gate_options={key: dict(options) for key, options in GATES_BACK.items()},
            state=StageState.WAITING,
            state_since=now,
        )
    )
    Stage.objects.bulk_create(rows)


def _record_in_audit(plan: Plan, verb: str, *, actor: User, document: str, now: datetime) -> None:
    who = actor.get_username()
    record_event(
        plan=plan, what="plan", was="", to=verb, now=now, actor=who, reason=f"{plan.from_version} → {plan.to_version}"
    )
    evidence: dict[str, Any] = {
        "from": plan.from_version,
        "to": plan.to_version,
        "stages": [s.name for s in plan.stages.all()],
    }
    if document:
        evidence["document"] = document
    AuditEntry.record(plan.mark, verb=verb, actor=who, evidence=evidence, now=now)


MANY = 1_000  # nodes
FIX = "Expect minutes before the first change: every node is held first. Larger waves take less time."


def is_large(nodes: int, duration: Duration) -> Iterator[Check]:
    if nodes >= MANY:
        title = f"The plan changes {count(nodes, 'node')}"
        yield Check("large", title=title, summary=duration.sentence, steps=(FIX,), field="stages")
