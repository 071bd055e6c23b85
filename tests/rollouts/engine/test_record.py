from dataclasses import replace
from datetime import datetime, timedelta

import msgspec
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from edges.transition_errors import LostRace
from fleet.models import Node
from gpu.labels import HELD_BY, UPGRADE_SKIP
from kube.structs import NodeSeen
from people.models import AuditEntry
from rollouts.commands import plan_control
from rollouts.engine.decide.acts import MovePlan, MoveStage, MoveTarget
from rollouts.engine.record import make_moves, pause, record_answers, record_holds
from rollouts.gates.base import Answer, GateResult
from rollouts.lifecycle import PlanState, StageState, TargetState
from rollouts.models import Approval, GateAnswer, Hold, Plan, PlanEvent, Stage, Target
from rollouts.models.gate_answer import BLIND
from rollouts.queries.warm_ups import slowest_warm_up
from tests.make import NOON, a_pod
from tests.rollouts.rows import a_started_plan, an_item, in_state
from wording.reports import EvidenceItem

PASS = GateResult(Answer.PASS, title="All 1 nodes run it", evidence=(EvidenceItem("Changed nodes", 1),))
SECOND = timedelta(seconds=1)


@pytest.fixture
def plan(cluster, owner) -> Plan:
    plan = in_state(a_started_plan(cluster, owner), "promoting")
    plan.take_lease(owner="worker-1", now=NOON)
    return plan


def recorded(plan: Plan, result: GateResult, *, at=NOON) -> GateAnswer:
    record_answers(plan, plan.stages.all(), {0: {"driver_version": result}}, now=at)
    return GateAnswer.objects.get(stage__plan=plan, gate="driver_version", is_current=True)


def test_an_answer_is_kept_with_its_numbers(plan: Plan):
    answer = recorded(plan, PASS)

    assert (answer.answer, answer.title, answer.evidence) == (
        "pass",
        "All 1 nodes run it",
        [an_item("Changed nodes", 1)],
    )
    assert PlanEvent.objects.filter(plan=plan, what="gate").count() == 1


def test_new_numbers_move_the_same_row(plan: Plan):
    first = recorded(plan, PASS)

    second = recorded(plan, replace(PASS, evidence=(EvidenceItem("Changed nodes", 2),)), at=NOON + SECOND)

    assert second.pk == first.pk
    assert (second.since, second.at, second.evidence) == (NOON, NOON + SECOND, [an_item("Changed nodes", 2)])
    assert PlanEvent.objects.filter(plan=plan, what="gate").count() == 1


def test_what_is_answered_as_before_is_one_write_for_all_of_them(plan: Plan):
    answers = dict.fromkeys(("driver_version", "failure_budget", "operands_ready"), PASS)
    record_answers(plan, plan.stages.all(), {0: answers}, now=NOON)

    with CaptureQueriesContext(connection) as asked:
        record_answers(plan, plan.stages.all(), {0: answers}, now=NOON + SECOND)

    written = [
        each["sql"] for each in asked if each["sql"].startswith(("UPDATE", "INSERT")) and "answer" in each["sql"]
    ]
    assert len(written) == 1
    times = GateAnswer.objects.filter(stage__plan=plan).values_list("since", "at")
    assert {*times} == {(NOON, NOON + SECOND)}


def test_numbers_stay_in_the_order_in_which_the_gate_gave_them(plan: Plan):
    """A jsonb of PostgreSQL would have them by the length of their names."""
    given = tuple(EvidenceItem(label, 0) for label in ("Tolerated", "Changed", "Of"))
    recorded(plan, replace(PASS, evidence=given))

    current = GateAnswer.objects.get(stage__plan=plan, is_current=True)

    assert [item["label"] for item in current.evidence] == ["Tolerated", "Changed", "Of"]


def test_another_answer_is_another_row_and_the_old_one_stays(plan: Plan):
    recorded(plan, PASS)

    recorded(plan, GateResult(Answer.WAIT, title="Wait."), at=NOON + SECOND)

    assert GateAnswer.objects.filter(stage__plan=plan).count() == 2
    assert PlanEvent.objects.filter(plan=plan, what="gate").count() == 2


def test_another_cause_is_another_row_of_the_same_answer_begun_when_it_began(plan: Plan):
    waits = GateResult(Answer.WAIT, title="2 of 3 nodes are still to come.", cause="to-come")
    recorded(plan, waits)

    numbers = recorded(plan, replace(waits, title="1 of 3 nodes is still to come."), at=NOON + SECOND)
    silent = recorded(plan, replace(waits, title="node-0 is silent.", cause="silent"), at=NOON + 2 * SECOND)

    assert [row.cause for row in GateAnswer.objects.filter(stage__plan=plan).order_by("pk")] == ["to-come", "silent"]
    assert numbers.title == "1 of 3 nodes is still to come."
    assert (silent.since, silent.at) == (NOON, NOON + 2 * SECOND)
    assert PlanEvent.objects.filter(plan=plan, what="gate").count() == 1


def waiting_since(plan: Plan, *, window: str, headroom: str, at: datetime) -> list[datetime]:
    """Of the gates of each wave, which wait for these causes."""
    waits = {
        "window": GateResult(Answer.WAIT, title=window, cause=window),
        "headroom": GateResult(Answer.WAIT, title="", cause=headroom),
    }
    record_answers(plan, plan.stages.all(), {0: waits}, now=at)
    current = GateAnswer.objects.filter(stage__plan=plan, is_current=True)
    return [current.get(gate=gate).since for gate in waits]


@pytest.mark.parametrize("headroom", ["unseen", "short"], ids=["waits as before", "waits for another cause"])
def test_the_time_for_which_a_window_was_closed_counts_for_no_other_wait(plan: Plan, headroom):
    first, second, third, fourth = (NOON + number * SECOND for number in range(4))

    assert waiting_since(plan, window="closed", headroom="unseen", at=first) == [first, first]
    assert waiting_since(plan, window="closes-soon", headroom="unseen", at=second) == [first, first]
    assert waiting_since(plan, window="no-window", headroom=headroom, at=third) == [third, third]
    assert waiting_since(plan, window="never", headroom=headroom, at=fourth) == [third, third]


def test_the_time_for_which_nothing_might_go_counts_for_no_wait_for_room(plan: Plan):
    """A freeze, or a window that no gate asks for: once it lets a node go, the room has its whole wait timeout."""

    def waiting_since(cause: str, at: datetime) -> datetime:
        waits = GateResult(Answer.WAIT, title=f"{cause}.", cause=cause)
        record_answers(plan, plan.stages.all(), {0: {"headroom": waits}}, now=at)
        return GateAnswer.objects.get(stage__plan=plan, is_current=True, gate="headroom").since

    first, second, third, fourth = (NOON + number * SECOND for number in range(4))

    assert waiting_since("bound", first) == first
    assert waiting_since("bound", second) == first
    assert waiting_since("short", third) == third
    assert waiting_since("unseen", fourth) == third


def test_a_window_that_is_only_advisory_keeps_nobodys_wait_timeout(plan: Plan):
    Stage.objects.filter(plan=plan, index=0).update(gate_options={"window": {"advisory": True}, "headroom": {}})

    waiting_since(plan, window="closed", headroom="unseen", at=NOON)

    assert waiting_since(plan, window="no-window", headroom="short", at=NOON + SECOND) == [NOON, NOON]


def test_a_cause_longer_than_its_column_is_the_same_cause_again(plan: Plan):
    waits = GateResult(Answer.WAIT, title="Wait.", cause="x" * 500)

    assert recorded(plan, waits).pk == recorded(plan, waits, at=NOON + SECOND).pk


def test_a_reason_longer_than_its_columns_is_cut_and_halts_the_plan(plan: Plan):
    """Whoever rejects a stage gives a reason of 1,000 characters."""
    result = GateResult(Answer.FAIL, title="amy rejected the stage", summary=f"Reason: {'x' * 1000}")

    first = recorded(plan, result)
    make_moves(plan, plan.stages.all(), (MovePlan(PlanState.HALTED, result.sentence),), now=NOON)

    entry = AuditEntry.objects.filter(subject=plan.mark).last()
    assert first.sentence == entry.reason == result.sentence
    again = recorded(plan, result, at=NOON + SECOND)
    assert recorded(plan, result, at=NOON + 2 * SECOND).pk == again.pk


@pytest.mark.parametrize(
    "moves",
    [(MoveStage(0, StageState.PASSED, "Every gate passed."),), (MovePlan(PlanState.HALTED, "A gate failed."),)],
    ids=["stage", "plan"],
)
def test_what_a_move_rested_on_is_never_written_again(plan: Plan, moves):
    Stage.objects.filter(plan=plan, index=0).update(state=StageState.SOAKING)
    rested = recorded(plan, PASS)
    make_moves(plan, plan.stages.all(), moves, now=NOON)

    later = recorded(plan, replace(PASS, evidence=(EvidenceItem("Changed nodes", 2),)), at=NOON + SECOND)

    rested.refresh_from_db()
    assert (rested.rested_on_at, rested.evidence, rested.is_current) == (NOON, [an_item("Changed nodes", 1)], False)
    assert (later.since, later.evidence, later.rested_on_at) == (NOON, [an_item("Changed nodes", 2)], None)


def test_an_answer_of_an_earlier_round_is_not_what_a_move_rests_on(plan: Plan):
    earlier = recorded(plan, PASS)

    make_moves(plan, plan.stages.all(), (MovePlan(PlanState.HALTED, "Ada said so."),), now=NOON + SECOND)

    earlier.refresh_from_db()
    assert earlier.rested_on_at is None


def test_a_stage_that_soaks_rests_on_its_targets_and_on_no_answer(plan: Plan):
    Stage.objects.filter(plan=plan, index=0).update(state=StageState.PROMOTING)
    answer = recorded(plan, PASS)

    make_moves(plan, plan.stages.all(), (MoveStage(0, StageState.SOAKING, "Every target has changed."),), now=NOON)

    answer.refresh_from_db()
    assert answer.rested_on_at is None


def test_an_answer_says_whether_its_gate_was_advisory(plan: Plan):
    Stage.objects.filter(plan=plan, index=0).update(gate_options={"driver_version": {"advisory": True}})

    assert recorded(plan, PASS).is_advisory


def test_a_gap_in_which_nobody_looked_begins_the_answer_anew(plan: Plan):
    """A soak counts only what was watched."""
    recorded(plan, PASS)

    watched = recorded(plan, PASS, at=NOON + BLIND)
    assert watched.since == NOON

    after_a_gap = recorded(plan, PASS, at=NOON + 2 * BLIND + SECOND)
    assert after_a_gap.since == NOON + 2 * BLIND + SECOND


def test_a_worker_whose_lease_is_over_records_nothing(plan: Plan):
    Plan.objects.filter(pk=plan.pk).update(epoch=99)

    with pytest.raises(LostRace):
        recorded(plan, PASS)
    with pytest.raises(LostRace):
        make_moves(plan, plan.stages.all(), (MovePlan(PlanState.HALTED, "No."),), now=NOON)

    assert not GateAnswer.objects.exists()
    assert Plan.objects.get(pk=plan.pk).state == PlanState.PROMOTING


def uid_of(name: str) -> str:
    return Target.objects.get(node_name=name).node_uid


def test_moves_are_all_made_or_none(plan: Plan):
    moves = (
        MoveTarget(0, uid_of("node-0"), "node-0", TargetState.RELEASING, "Its turn."),
        MoveStage(0, StageState.PASSED, "Not from waiting."),
    )

    with pytest.raises(LostRace):
        make_moves(plan, plan.stages.all(), moves, now=NOON)

    assert Target.objects.get(node_name="node-0").state == TargetState.HELD
    assert not PlanEvent.objects.filter(what="target").exists()


def test_a_stage_that_was_rejected_meanwhile_does_not_begin(plan: Plan):
    """The round has seen an approval; the no of another came between its look and its move."""
    Stage.objects.filter(plan=plan, index=0).update(state=StageState.OPENING)
    given = {"bundle": {}, "bundle_hash": "-", "at": NOON, "reason": "Not now."}
    Approval.objects.create(stage=plan.stages.get(index=0), by="dora", is_rejection=True, **given)

    with pytest.raises(LostRace):
        make_moves(
            plan, plan.stages.all(), (MoveStage(0, StageState.PROMOTING, "Nothing speaks against it."),), now=NOON
        )

    assert plan.stages.get(index=0).state == StageState.OPENING


def test_an_escape_is_marked(plan: Plan):
    """Z4."""
    move = MoveTarget(0, uid_of("node-0"), "node-0", TargetState.CHANGING, "Although held.", has_escaped=True)

    make_moves(plan, plan.stages.all(), (move,), now=NOON)

    assert Target.objects.get(node_name="node-0").has_escaped


def test_the_end_of_a_plan_keeps_the_answers_it_rests_on(plan: Plan):
    recorded(plan, PASS)

    make_moves(plan, plan.stages.all(), (MovePlan(PlanState.PROMOTED, "Every stage passed."),), now=NOON)

    entry = AuditEntry.objects.filter(subject=plan.mark).last()
    assert entry.verb == "become promoted"
    assert entry.evidence["answers"]["0:driver_version"]["answer"] == "pass"


def test_the_engine_pauses_once(plan: Plan):
    pause(plan, "Somebody has to look.", told=plan.commands.newest(), now=NOON)
    pause(plan, "Somebody has to look.", told=plan.commands.newest(), now=NOON + SECOND)

    assert plan.commands.in_force().count() == 1
    assert AuditEntry.objects.filter(subject=plan.mark, verb="pause").count() == 1


def test_the_engine_does_not_pause_over_an_answer_that_came_meanwhile(plan: Plan, owner):
    """A round has seen why to pause; before it writes that down, a person takes things as they are and resumes."""
    pause(plan, "Somebody has to look.", told=plan.commands.newest(), now=NOON)
    told = plan.commands.newest()
    plan_control.resume(plan, actor=owner, reason="I have looked.", now=NOON + SECOND)

    with pytest.raises(LostRace):
        pause(plan, "Somebody has to look.", told=told, now=NOON + 2 * SECOND)

    assert not plan.commands.in_force().exists()


def test_a_label_that_went_with_nobody_to_write_it_went_when_it_was_seen_to_be_gone(plan: Plan):
    """A worker died after its patch. Whoever counts what was let go would have one node less in all."""
    Hold.objects.filter(plan=plan).update(placed_at=NOON)
    Hold.objects.filter(plan=plan).exclude(node_name="node-0").update(is_wanted=False)
    held = {"labels": {UPGRADE_SKIP: "true"}, "annotations": {HELD_BY: plan.mark}}
    seen = [
        {"metadata": {"name": hold.node_name, "uid": hold.node_uid} | (held if hold.node_name == "node-2" else {})}
        for hold in Hold.objects.filter(plan=plan)
    ]

    record_holds(plan, msgspec.convert(seen, list[NodeSeen]), now=NOON + SECOND)

    found = Hold.objects.filter(plan=plan).values_list("node_name", "placed_at", "freed_at")
    assert {*found} == {("node-0", None, None), ("node-1", None, NOON + SECOND), ("node-2", NOON, None)}


def test_the_warm_up_of_pods_is_stored_at_the_end_of_the_plan(plan: Plan, monkeypatch):
    depths, outside = list[int](), len(connection.savepoint_ids)

    def measured(*given, **named):
        depths.append(len(connection.savepoint_ids))
        return slowest_warm_up(*given, **named)

    monkeypatch.setattr("rollouts.engine.record.slowest_warm_up", measured)
    target = Target.objects.filter(stage__plan=plan, stage__index=0).first()
    Target.objects.filter(pk=target.pk).update(state=TargetState.CHANGED, released_at=NOON, state_since=NOON)
    ready = {"started_at": NOON + SECOND, "ready_since": NOON + 301 * SECOND, "is_ready": True}
    a_pod(Node.objects.get(uid=target.node_uid), owner_kind="ReplicaSet", owner_name="chat", **ready)

    make_moves(plan, plan.stages.all(), (MovePlan(PlanState.PROMOTED, "Every stage passed."),), now=NOON + 900 * SECOND)

    plan.refresh_from_db()
    assert (plan.state, plan.warm_up_s) == (PlanState.PROMOTED, 300)
    assert depths == [outside], "read outside of the transaction that locks the plan"
