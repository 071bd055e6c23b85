"""Records the results of a round: gate results, moves, and marks on nodes."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from django.db import transaction

from edges.slices import slices
from edges.transition_errors import IllegalMove, LostRace
from fleet.models import DomainEvent
from gpu.external_controllers import Metadata, earlier_values
from gpu.labels import CORDONED_BY, EXCLUDED_BY, HELD_BY
from kube.structs import NodeSeen
from operations.models import Disruption
from people.models import AuditEntry
from rollouts.engine.decide.acts import Move, MovePlan, MoveStage, MoveTarget
from rollouts.gates import GATES
from rollouts.gates.approval import ApprovalGate
from rollouts.gates.base import UNTIMED_WAITS, Answer, GateResult, When
from rollouts.gates.failure_budget import FAILED, TOLERATED, FailureBudget
from rollouts.gates.window import Window, comes_by_itself
from rollouts.lifecycle import PLAN_FINAL, StageState, TargetState
from rollouts.models import Command, Cordon, Exclusion, GateAnswer, Hold, Plan, Stage, Target, Verb
from rollouts.models.gate_answer import LONGEST_REASON, answer_columns
from rollouts.models.plan import wake_plans
from rollouts.models.target import move_targets
from rollouts.models.transitions import record_event
from rollouts.queries.restraints import GOES_BACK
from rollouts.queries.warm_ups import slowest_warm_up


def record_answers(
    plan: Plan, stages: Iterable[Stage], results: Mapping[int, Mapping[str, GateResult]], *, now: datetime
) -> None:
    """Records gate results with a fixed number of writes, plus one per changed result or changed number."""
    by_index = {stage.index: stage for stage in stages}
    rows = GateAnswer.objects.filter(stage__in=[stage.pk for stage in by_index.values()], is_current=True).order_by()
    current = {(row.stage_id, row.gate): row for row in rows}
    with transaction.atomic():
        plan.keep_lease(now=now)
        as_before, replaced = list[int](), list[int]()
        made: list[tuple[GateAnswer, GateAnswer | None]] = []
        for index, answers in results.items():
            stage = by_index[index]
            opens = _ends_reported_wait(current.get((stage.pk, Window.key)), answers.get(Window.key))
            for gate, result in answers.items():
                before = current.get((stage.pk, gate))
                is_anew = (opens and GATES[gate].when is When.WAVE) or _was_bound(before, result)
                answer = _answer(stage, gate, result, before, is_anew=is_anew, now=now)
                if _has_used_up(answer) and not (before and _has_used_up(before)):
                    DomainEvent.write([_event_of_stage(plan, answer, "plan.failures-used", "failures", now=now)])
                if before is not None and _is_as_before(before, answer):
                    as_before.append(before.pk)
                elif before is not None and before.has_same_cause(answer) and before.rested_on_at is None:
                    GateAnswer.objects.filter(pk=before.pk).update(at=now, **answer.moving)
                else:
                    made.append((answer, before))
                    replaced += [before.pk] if before is not None else []
        if as_before:
            GateAnswer.objects.filter(pk__in=as_before).update(at=now)
        if replaced:
            GateAnswer.objects.filter(pk__in=replaced).update(is_current=False)
        GateAnswer.objects.bulk_create(answer for answer, _ in made)
        for answer, before in made:
            _record_result_event(plan, answer, before, now=now)


def _is_as_before(before: GateAnswer, answer: GateAnswer) -> bool:
    """Returns whether result, text and numbers are unchanged and no move rests on them: only the time changes."""
    return before.rested_on_at is None and before.has_same_content(answer)


def _ends_reported_wait(before: GateAnswer | None, window: GateResult | None) -> bool:
    """Returns whether a wait that ended by itself is over, so that a person may have to end the next one."""
    was_shut = before is not None and before.comes_by_itself
    return was_shut and window is not None and not comes_by_itself(Window.key, window.cause)


def _was_bound(before: GateAnswer | None, result: GateResult) -> bool:
    """Returns whether a freeze or window released some node since, so that the wait is a new one."""
    return before is not None and before.cause in UNTIMED_WAITS and before.cause != result.cause


def _answer(
    stage: Stage, gate: str, result: GateResult, before: GateAnswer | None, *, is_anew: bool, now: datetime
) -> GateAnswer:
    said = answer_columns(result, before, is_anew=is_anew, now=now)
    is_advisory = any(each.key == gate and each.advisory for each in stage.gates)
    return GateAnswer(stage=stage, gate=gate, is_advisory=is_advisory, **said)


def _record_result_event(plan: Plan, answer: GateAnswer, before: GateAnswer | None, *, now: datetime) -> None:
    """Records an event for a changed result. A new cause of the same result is in its row only."""
    was = before.answer if before is not None else ""
    if was == answer.answer:
        return
    to = f"{answer.gate} {answer.answer}"[:32]
    told = {"was": was, "to": to, "actor": "engine", "reason": answer.sentence}
    record_event(plan=plan, stage=answer.stage, what="gate", now=now, **told)
    if answer.gate == ApprovalGate.key and not answer.is_advisory and Answer.WAIT in (was, answer.answer):
        kind = "plan.approval-wanted" if answer.answer == Answer.WAIT else "plan.approval-settled"
        DomainEvent.write([_event_of_stage(plan, answer, kind, now=now)])


def _has_used_up(answer: GateAnswer) -> bool:
    """Returns whether as many nodes have failed as the stage tolerates. One more halts the plan, which is a finding."""
    if answer.gate != FailureBudget.key or answer.is_advisory:
        return False
    tolerated = answer.value_of(TOLERATED)  # None: the answer counts nothing, as without targets
    return tolerated is not None and 0 < tolerated == answer.value_of(FAILED)


def _event_of_stage(plan: Plan, answer: GateAnswer, kind: str, about: str = "", *, now: datetime) -> DomainEvent:
    event = plan.event_of(kind, now=now, actor="engine", reason=answer.sentence)
    event.key += f"/stage/{answer.stage.pk}{about and f'/{about}'}"
    event.severity, event.pool_id = "warning", answer.stage.pool_id
    event.facts |= {"severity": "warning", "stage": answer.stage.pk, "stage_name": answer.stage.name}
    return event


def make_moves(plan: Plan, stages: Iterable[Stage], moves: tuple[Move, ...], *, now: datetime) -> None:
    """Writes the moves: first of plan and stages, at once, then of targets, in short transactions (Z40).

    A halt is thus in force before the targets that it rests on have moved; a round of a halted plan moves them, too.

    :raises LostRace: when somebody else was faster; the next round continues from there
    """
    by_index = {stage.index: stage for stage in stages}
    of_targets: dict[MoveTarget, list[str]] = defaultdict(list)  # uids of the nodes that move alike
    others = list[MoveStage | MovePlan]()
    for move in moves:
        if isinstance(move, MoveTarget):
            of_targets[replace(move, uid="", name="")].append(move.uid)
        else:
            others.append(move)
    ends = any(isinstance(move, MovePlan) and move.to in PLAN_FINAL for move in others)
    warm_up_s = slowest_warm_up(plan, by=now) if ends else None  # before the lock: it reads pods of all changed nodes
    try:
        if others:
            with transaction.atomic():
                plan.keep_lease(now=now)
                for move in others:
                    _apply_move(plan, by_index, move, now=now)
                if ends:
                    Plan.objects.filter(pk=plan.pk).update(warm_up_s=warm_up_s)
                if any(rests_on_answers(move) for move in others):
                    _keep_answers(plan, now=now)
        for move, uids in of_targets.items():
            for some in slices(uids):
                with transaction.atomic():
                    plan.keep_lease(now=now)
                    _move_targets(by_index[move.stage_index], move, some.whole(), now=now)
    except IllegalMove as late:
        # Legal on the snapshot it was decided from: a person has moved a stage or a target since.
        raise LostRace(str(late)) from late


def rests_on_answers(move: Move) -> bool:
    """Returns whether the move rests on gate results.

    A stage soaks because its targets changed; gates decide all else.
    """
    if isinstance(move, MoveStage):
        return move.to in {StageState.PROMOTING, StageState.PASSED, StageState.HALTED}
    return isinstance(move, MovePlan)


def _keep_answers(plan: Plan, *, now: datetime) -> None:
    """Keeps this round's results, since the move rests on them; new numbers get a new row."""
    GateAnswer.objects.filter(stage__plan=plan, is_current=True, at=now).update(rested_on_at=now)


def give_back(plan: Plan, node_uids: Collection[str], *, now: datetime) -> None:
    if not node_uids:
        return
    with transaction.atomic():
        plan.keep_lease(now=now)
        given = Disruption.objects.filter(taken_by=plan.mark, node_uid__in=node_uids).give_back(now=now)
    if given:
        wake_plans(Plan.objects.filter(cluster=plan.cluster_id).exclude(pk=plan.pk), now=now)


def note_served(plan: Plan, node_uids: Collection[str], *, now: datetime) -> None:
    """Records that tenants' pods ran on these nodes since the change. Skips a node that is no longer changed."""
    if not node_uids:
        return
    with transaction.atomic():
        plan.keep_lease(now=now)
        served = Target.objects.filter(stage__plan=plan, node_uid__in=node_uids, state=TargetState.CHANGED).forward()
        served.filter(state_since__lte=now).update(tenants_ready_at=now)


def _apply_move(plan: Plan, stages: Mapping[int, Stage], move: MoveStage | MovePlan, *, now: datetime) -> None:
    if isinstance(move, MoveStage):
        stage = stages[move.stage_index]
        if move.to is StageState.PROMOTING and _is_rejected(stage):
            raise LostRace(f"{stage.name} was rejected during this round.")
        stage.move(move.to, now=now, actor="engine", reason=move.reason)
    else:
        plan.move(move.to, now=now, actor="engine", reason=move.reason)
        evidence, reason = {"answers": _answers_now(plan)}, move.reason[:LONGEST_REASON]
        verb = f"become {move.to}"
        AuditEntry.record(plan.mark, verb=verb, actor="engine", reason=reason, evidence=evidence, now=now)


def _is_rejected(stage: Stage) -> bool:
    """Returns whether the stage was rejected since the round began; the lock on the plan decides who was first."""
    return not stage.is_rollback and stage.approvals.standing().filter(is_rejection=True).exists()


def _move_targets(stage: Stage, move: MoveTarget, uids: Sequence[str], *, now: datetime) -> None:
    targets = list(Target.objects.filter(stage=stage, node_uid__in=uids))
    for target in targets:
        target.stage = stage
    move_targets(targets, move.to, now=now, actor="engine", reason=move.reason)
    if move.has_escaped or move.is_lost:
        keys = [target.pk for target in targets]
        Target.objects.filter(pk__in=keys).update(has_escaped=move.has_escaped, is_lost=move.is_lost)


def _answers_now(plan: Plan) -> dict[str, dict]:
    rows = GateAnswer.objects.filter(stage__plan=plan, is_current=True).select_related("stage")
    return {f"{row.stage.index}:{row.gate}": {"answer": row.answer, **row.report} for row in rows}


def note_armed(plan: Plan, object_version: str, *, now: datetime) -> None:
    """Records since when the cluster is armed, if a worker died right after its write."""
    if object_version == plan.to_version and plan.write_intended_at and plan.armed_since is None:
        plan.armed_since = now
        Plan.objects.filter(pk=plan.pk, armed_since__isnull=True).update(armed_since=now)


def note_put_back(plan: Plan, object_version: str, *, now: datetime) -> None:
    """Records who restored the old version, also if a worker died right after its write.

    The record is removed if the new version is there again, by a late write of ours or by somebody else.
    """
    if plan.state not in GOES_BACK or plan.write_intended_at is None:
        return
    was = plan.put_back_at
    if object_version == plan.from_version and was is None:
        plan.put_back_at = now
    elif object_version == plan.to_version and was is not None:
        plan.put_back_at = None
    if plan.put_back_at != was:
        Plan.objects.filter(pk=plan.pk, put_back_at=was).update(put_back_at=plan.put_back_at)


def end_handover(plan: Plan, object_version: str, *, now: datetime) -> None:
    """Ends a handover whose version or template has changed, since the decision was about the earlier one (Z38)."""
    was = plan.handed_to
    if not was or (object_version == was and not plan.template_change):
        return
    reason = f"The object no longer requests {was}. Decide again whether to hand over the nodes."
    with transaction.atomic():
        plan.keep_lease(now=now)
        if Plan.objects.filter(pk=plan.pk, handed_to=was).update(handed_to=""):
            plan.commands.filter(verb=Verb.HANDOVER, ended_at=None).update(ended_at=now, ended_by="engine")
            record_event(plan=plan, what="note", was="", to="handover-void", now=now, actor="engine", reason=reason)
    plan.handed_to = ""


def record_holds(plan: Plan, seen: Sequence[NodeSeen], *, now: datetime) -> None:
    ours = Hold.objects.filter(plan=plan, is_foreign=False)
    there = {node.uid for node in seen}
    hold = plan.its_component.hold
    marked = (node for node in seen if node.annotations.get(HELD_BY) == plan.mark)
    labelled = {node.uid for node in marked if hold is not None and hold.is_on(node.labels)}
    placed = ours.filter(placed_at__isnull=False).order_by().values_list("pk", "node_uid")
    absent = ours.filter(is_wanted=True).order_by().values_list("pk", "node_uid")
    plan.keep_lease(now=now)
    for some in slices([pk for pk, uid in placed if uid not in labelled]):
        with transaction.atomic():
            plan.keep_lease(now=now)
            gone = ours.filter(pk__in=some.whole())
            gone.filter(is_wanted=False).update(freed_at=now)
            gone.update(placed_at=None)
    for some in slices([pk for pk, uid in absent if uid not in there]):
        with transaction.atomic():
            plan.keep_lease(now=now)
            ours.filter(pk__in=some.whole(), is_wanted=True).update(is_wanted=False, wanted_since=now)


def record_exclusions(plan: Plan, seen: Sequence[NodeSeen], *, now: datetime) -> None:
    """Creates rows for exclusions that the API server shows as ours, so that none outlives the plan."""
    ours = [node for node in seen if node.annotations.get(EXCLUDED_BY) == plan.mark]
    if not ours:
        return
    found = {(node.uid, key): (node.name, was) for node in ours for key, was in earlier_values(_metadata(node)).items()}
    with transaction.atomic():
        plan.keep_lease(now=now)
        rows = Exclusion.objects.in_force().filter(plan=plan, node_uid__in=[node.uid for node in ours])
        for uid, key in rows.values_list("node_uid", "controller"):
            found.pop((uid, key), None)
        Exclusion.objects.bulk_create(
            Exclusion(
                plan=plan, node_uid=uid, node_name=name, controller=key, was=was, is_wanted=False, wanted_since=now,
                placed_at=now,
            )
            for (uid, key), (name, was) in sorted(found.items())
        )  # fmt: skip


def record_cordons(plan: Plan, seen: Sequence[NodeSeen], *, now: datetime) -> None:
    """Creates rows for cordons that the API server shows as ours, so that none outlives the plan unreported."""
    ours = {node.uid: node.name for node in seen if node.annotations.get(CORDONED_BY) == plan.mark}
    if not ours:
        return
    with transaction.atomic():
        plan.keep_lease(now=now)
        known = Cordon.objects.in_force().filter(plan=plan, node_uid__in=ours).values_list("node_uid", flat=True)
        missing = ours.keys() - set(known)
        Cordon.objects.bulk_create(
            Cordon(plan=plan, node_uid=uid, node_name=ours[uid], wanted_since=now, placed_at=now)
            for uid in sorted(missing)
        )


def _metadata(node: NodeSeen) -> Metadata:
    return Metadata(node.labels, node.annotations)


def pause(plan: Plan, reason: str, *, told: int | None, now: datetime) -> int | None:
    """Pauses the plan until a person acts, and returns the newest command; a pause in force is enough.

    `told` is the newest command known at the decision.

    :raises LostRace: when somebody has given a command since, which may have been the answer
    """
    with transaction.atomic():
        Plan.objects.select_for_update(no_key=True).get(pk=plan.pk)
        if plan.commands.newest() != told:
            raise LostRace("The plan received a command during this round.")
        if plan.commands.in_force().exists():
            return told
        made = Command.objects.create(plan=plan, verb=Verb.PAUSE, actor="engine", at=now, reason=reason[:1000])
        record_event(plan=plan, what="command", was="", to="pause", now=now, actor="engine", reason=reason)
        AuditEntry.record(plan.mark, verb="pause", actor="engine", reason=reason[:1000], now=now)
        return made.pk
