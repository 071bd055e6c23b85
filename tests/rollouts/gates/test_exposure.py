"""Hazard Z27: an idle canary proves nothing."""

from datetime import timedelta

import pytest

from rollouts.gates.base import NO_TARGET, TO_COME, UNSEEN, Answer, SeenWork
from rollouts.gates.exposure import Exposure
from rollouts.gates.options import BadGate, read_gates
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_held_target, a_target, evidence

NOTHING_SAYS = " How busy the GPUs of {} were nothing says: there it is for how long pods have had them."


def worked(name: str = "node-1", minutes: float = 60, *, is_heard: bool = False, **given):
    return a_target(name, work=SeenWork(timedelta(minutes=minutes), is_heard), **given)


def evaluated(*targets, **options):
    return Exposure(**options).evaluate(evidence(*targets), now=NOON)


def test_passes_once_tenants_have_worked_for_long_enough():
    result = evaluated(worked(minutes=61.5))

    assert result.answer is Answer.PASS
    assert result.reason == (
        "61 GPU-minutes of tenants' work were seen on node-1 since the change: it asks for 60 on 1 node."
        f"{NOTHING_SAYS.format('node-1')}"
    )
    assert result.measured == {
        "gpu_minutes": 61, "gpu_minutes_needed": 60, "nodes": 1, "nodes_needed": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("minutes", "answer"), [(59.99, Answer.WAIT), (60, Answer.PASS)])
def test_less_than_is_asked_waits(minutes: float, answer: Answer):
    assert evaluated(worked(minutes=minutes)).answer is answer


def test_an_idle_canary_waits_and_is_named():
    result = evaluated(worked(minutes=0), worked("node-2", minutes=0))

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, "idle", ("node-1", "node-2"))
    assert not result.is_final
    assert result.reason == (
        "No GPU-minute of tenants' work was seen on node-1, node-2 since the change: it asks for 60 on 1 node."
    )


def test_the_work_of_all_changed_nodes_is_one_sum_and_each_has_to_have_some():
    assert evaluated(worked(minutes=30), worked("node-2", minutes=30)).answer is Answer.PASS
    assert evaluated(worked(minutes=99), worked("node-2", minutes=0.5), nodes=2).cause == "too-little"
    assert evaluated(worked(minutes=99), worked("node-2", minutes=1), nodes=2).answer is Answer.PASS


def test_little_work_is_another_cause_than_none():
    result = evaluated(worked(minutes=1), gpu_minutes=2)

    assert (result.answer, result.cause) == (Answer.WAIT, "too-little")
    assert result.reason == (
        "1 GPU-minute of tenants' work was seen on node-1 since the change: it asks for 2 on 1 node."
        f"{NOTHING_SAYS.format('node-1')}"
    )


@pytest.mark.parametrize("unseen", [a_target(work=None), worked(is_seen=False)])
def test_what_nobody_sees_is_never_enough_and_is_not_called_idle(unseen):
    result = evaluated(unseen)

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, UNSEEN, ("node-1",))


def test_it_says_of_which_nodes_nothing_tells_whether_their_gpus_were_busy():
    """Where utilisation is not exported, or nothing is heard, pods that had GPUs may have done nothing with them."""
    result = evaluated(worked(minutes=60, is_heard=True), worked("node-2", minutes=2), worked("node-3", minutes=0))

    assert result.answer is Answer.PASS
    assert result.reason.endswith(NOTHING_SAYS.format("node-2"))
    assert "nothing says" not in evaluated(worked(minutes=60, is_heard=True)).reason


def test_where_telemetry_is_heard_it_says_that_hours_count_once_they_are_over():
    assert "an hour of theirs counts once it is over" in evaluated(worked(minutes=0, is_heard=True)).reason
    assert "once it is over" not in evaluated(worked(minutes=0)).reason


def test_nodes_still_to_come_are_waited_for():
    assert evaluated(worked(), a_held_target("node-2")).cause == TO_COME
    assert evaluated(a_held_target()).cause == TO_COME
    assert evaluated(a_target(state=TargetState.EXCLUDED)).cause == NO_TARGET


def test_more_nodes_than_there_are_can_never_come():
    result = evaluated(worked(), nodes=2)

    assert (result.answer, result.is_final) == (Answer.WAIT, True)
    assert result.reason == "It asks for tenants' work on 2 nodes, and the stage has 1."


@pytest.mark.parametrize("options", [{"gpu_minutes": 0}, {"nodes": 0}])
def test_it_cannot_be_told_to_pass_on_no_work(options):
    with pytest.raises(BadGate, match="at least 1"):
        read_gates({"exposure": options})
