"""Hazard Z27: an idle canary proves nothing."""

from datetime import timedelta

import pytest

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import NO_TARGET, TO_COME, UNSEEN, Answer, SeenWork, TestJobEvidence
from rollouts.gates.exposure import Exposure
from rollouts.gates.options import BadGate, read_gates
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_held_target, a_target, evidence, values_of


def worked(name: str = "node-1", minutes: float = 60, *, has_telemetry: bool = False, **given):
    return a_target(name, work=SeenWork(timedelta(minutes=minutes), has_telemetry), **{"test_job": None} | given)


def evaluated(*targets, **options):
    return Exposure(**options).evaluate(evidence(*targets), now=NOON)


def test_passes_once_tenants_have_worked_for_long_enough():
    result = evaluated(worked(minutes=61.5))

    assert result.answer is Answer.PASS
    assert result.title == "61 GPU-minutes of work since the change"
    assert values_of(result) == {
        "Work": 61,
        "Work needed": 60,
        "Nodes with work": "node-1",
        "Nodes needed": 1,
        "Counted as allocated time": "node-1",
    }


@pytest.mark.parametrize(("minutes", "answer"), [(59.99, Answer.WAIT), (60, Answer.PASS)])
def test_less_than_is_asked_waits(minutes: float, answer: Answer):
    assert evaluated(worked(minutes=minutes)).answer is answer


def test_an_idle_canary_waits_and_is_named():
    result = evaluated(worked(minutes=0), worked("node-2", minutes=0))

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, "idle", ("node-1", "node-2"))
    assert not result.is_final
    assert result.sentence == (
        "No tenant or test Job has used 2 nodes since the change. The gate needs 60 GPU-minutes on 1 node or more."
    )


def test_the_work_of_all_changed_nodes_is_one_sum_and_each_has_to_have_some():
    assert evaluated(worked(minutes=30), worked("node-2", minutes=30)).answer is Answer.PASS
    assert evaluated(worked(minutes=99), worked("node-2", minutes=0.5), nodes=2).cause == "too-little"
    assert evaluated(worked(minutes=99), worked("node-2", minutes=1), nodes=2).answer is Answer.PASS


def test_the_busy_time_of_the_test_job_is_not_counted_as_that_of_an_idle_tenant_too():
    job = TestJobEvidence(TestJobOutcome.PASSED, "It completed.", gpu_time=timedelta(minutes=30))

    result = evaluated(worked(minutes=40, has_telemetry=True, test_job=job))

    assert (values_of(result)["Work"], values_of(result)["Of test Jobs"]) == (40, 30)


def test_little_work_is_another_cause_than_none():
    result = evaluated(worked(minutes=1), gpu_minutes=2)

    assert (result.answer, result.cause) == (Answer.WAIT, "too-little")
    assert result.title == "1 GPU-minute of work since the change"
    assert result.summary == "The gate needs 2 GPU-minutes on 1 node or more."


@pytest.mark.parametrize("unseen", [a_target(work=None), worked(is_seen=False)])
def test_what_nobody_sees_is_never_enough_and_is_not_called_idle(unseen):
    result = evaluated(unseen)

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, UNSEEN, ("node-1",))


def test_it_says_of_which_nodes_nothing_tells_whether_their_gpus_were_busy():
    """Where utilisation is not exported, or nothing is heard, pods that had GPUs may have done nothing with them."""
    result = evaluated(worked(minutes=60, has_telemetry=True), worked("node-2", minutes=2), worked("node-3", minutes=0))

    assert result.answer is Answer.PASS
    assert values_of(result)["Counted as allocated time"] == "node-2"
    assert "Counted as allocated time" not in values_of(evaluated(worked(minutes=60, has_telemetry=True)))


def test_where_telemetry_has_telemetry_it_says_that_hours_count_once_they_are_over():
    hours = "Counted by complete hours of utilisation"

    assert values_of(evaluated(worked(minutes=0, has_telemetry=True)))[hours] == "node-1"
    assert hours not in values_of(evaluated(worked(minutes=0)))


@pytest.mark.parametrize(("ran", "counts"), [(0, 1), (20, 1), (90, 1), (150, 2)])
def test_a_passed_test_job_counts_with_its_time_and_a_minute_at_least(ran: float, counts: int):
    job = TestJobEvidence(TestJobOutcome.PASSED, gpu_time=timedelta(seconds=ran))

    result = evaluated(worked(minutes=0, test_job=job), gpu_minutes=counts)

    assert result.answer is Answer.PASS
    assert values_of(result)["Of test Jobs"] == counts
    assert evaluated(worked(minutes=0, test_job=job), gpu_minutes=counts + 1).answer is Answer.WAIT


@pytest.mark.parametrize("outcome", [None, TestJobOutcome.FAILED, TestJobOutcome.UNKNOWN])
def test_a_test_job_that_did_not_pass_is_no_work(outcome):
    job = TestJobEvidence(outcome, gpu_time=timedelta(hours=1))

    assert evaluated(worked(minutes=0, test_job=job), gpu_minutes=1).cause == "idle"


def test_nodes_still_to_come_are_waited_for():
    assert evaluated(worked(), a_held_target("node-2")).cause == TO_COME
    assert evaluated(a_held_target()).cause == TO_COME
    assert evaluated(a_target(state=TargetState.EXCLUDED)).cause == NO_TARGET


def test_more_nodes_than_there_are_can_never_come():
    result = evaluated(worked(), nodes=2)

    assert (result.answer, result.is_final) == (Answer.WAIT, True)
    assert result.sentence == "The gate needs work on 2 nodes; the stage has 1."


@pytest.mark.parametrize("options", [{"gpu_minutes": 0}, {"nodes": 0}])
def test_it_cannot_be_told_to_pass_on_no_work(options):
    with pytest.raises(BadGate, match="at least 1"):
        read_gates({"exposure": options})
