"""Hazards Z8, Z27: nothing is proven by a Job that did not complete since the change."""

import pytest

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import NO_TARGET, TO_COME, Answer, TestJobEvidence
from rollouts.gates.options import BadGate, read_gates
from rollouts.gates.test_job import TestJobGate
from rollouts.lifecycle import TargetState
from tests.make import NOON
from tests.rollouts.make import a_held_target, a_target, evidence, values_of


def told(name: str = "node-1", outcome: TestJobOutcome | None = None, says: str = "It runs.", said: str = "", **given):
    return a_target(name, test_job=TestJobEvidence(outcome, says, said), **given)


def evaluated(*targets, **options):
    return TestJobGate(**options).evaluate(evidence(*targets), now=NOON)


def test_passes_once_a_job_has_completed_on_each_changed_node():
    one, two = (told(name, TestJobOutcome.PASSED, "It completed.") for name in ("node-1", "node-2"))

    assert evaluated(one).answer is Answer.PASS
    assert (
        evaluated(one).sentence == "A test Job completed on the changed node. Each Job used GPUs with the new driver."
    )
    assert (
        evaluated(one, two).sentence
        == "A test Job completed on all 2 changed nodes. Each Job used GPUs with the new driver."
    )


def test_the_first_that_fails_fails_it_with_its_last_words_and_names_the_others():
    bad = told("node-2", TestJobOutcome.FAILED, "The test ended with exit code 1.", "CUDA error")
    worse = told("node-3", TestJobOutcome.FAILED, "The test did not end within 15 min.")
    result = evaluated(told("node-1", TestJobOutcome.PASSED), bad, worse, a_held_target("node-4"))

    assert result.answer is Answer.FAIL
    assert result.nodes == ("node-2", "node-3")
    assert result.sentence == "The test Job failed on 2 nodes. The test ended with exit code 1. CUDA error"


@pytest.mark.parametrize(
    ("test_job", "cause"),
    [
        (None, "not-made"),
        (TestJobEvidence(None, "It runs."), "not-through"),
        (TestJobEvidence(TestJobOutcome.UNKNOWN, "The pod failed before the test ended.", "Evicted"), "unknown"),
    ],
    ids=["not made", "on its way", "kept from running"],
)
def test_no_answer_is_no_pass(test_job: TestJobEvidence | None, cause: str):
    result = evaluated(told("node-1", TestJobOutcome.PASSED), a_target("node-2", test_job=test_job))

    assert (result.answer, result.cause, result.nodes) == (Answer.WAIT, cause, ("node-2",))


def test_a_node_that_offers_no_gpu_as_a_resource_is_said_and_not_passed():
    result = evaluated(a_target(test_job=None, allocatable={}))

    assert (result.answer, result.cause) == (Answer.WAIT, "no-resource")
    assert result.sentence == (
        "node-1 cannot run the test Job. The Job requests 1 GPU. The node offers no such resource."
    )


def test_what_has_not_changed_yet_is_to_come():
    done = told("node-1", TestJobOutcome.PASSED)

    assert evaluated(done, a_held_target("node-2")).cause == TO_COME
    assert evaluated(a_held_target("node-2")).cause == TO_COME
    assert evaluated(a_target(state=TargetState.EXCLUDED)).cause == NO_TARGET


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gpus": 0}, "gpus must be at least 1, because a Job without a GPU does not test GPUs"),
        ({"image": "a b"}, "image must be the name of one image, without blanks"),
    ],
)
def test_what_would_test_nothing_is_refused(options: dict, says: str):
    with pytest.raises(BadGate, match=says):
        read_gates({"test_job": options})


LIMITED = {"metric": "testcases.0.sum", "at_least": 150}


def measured(name: str = "node-1", value: float | None = None):
    return a_target(name, test_job=TestJobEvidence(TestJobOutcome.PASSED, "It completed.", value=value))


@pytest.mark.parametrize(
    ("value", "options", "expected", "cause"),
    [
        (150.0, LIMITED, Answer.PASS, ""),
        (149.9, LIMITED, Answer.FAIL, "metric"),
        (None, LIMITED, Answer.WAIT, "no-number"),
        (20.0, {"metric": "p99_ms", "at_most": 20}, Answer.PASS, ""),
        (20.1, {"metric": "p99_ms", "at_most": 20}, Answer.FAIL, "metric"),
        (None, {}, Answer.PASS, ""),
    ],
)
def test_the_number_that_a_job_prints_has_limits(value, options, expected, cause):
    result = evaluated(measured("node-1", value), **options)

    assert (result.answer, result.cause) == (expected, cause)


def test_a_result_beyond_its_limits_is_named_with_its_value():
    result = evaluated(measured("node-1", 312.5), measured("node-2", 92.5), **LIMITED)

    assert (result.nodes, result.summary) == (("node-2",), "testcases.0.sum is 92.5.")
    assert {"node-1": 312.5, "node-2": 92.5, "At least": 150}.items() <= {
        i.label: i.value for i in result.evidence
    }.items()


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "sum"},
        {"at_least": 1},
        {"metric": "a b", "at_least": 1},
        {"metric": "sum", "at_least": 3, "at_most": 2},
        {"command": "sh -c 'open"},
    ],
)
def test_a_metric_without_a_rule_and_a_command_that_is_no_command_are_refused(options):
    with pytest.raises(BadGate):
        read_gates({"test_job": options})


def compared(value: float, *, past: tuple[float, ...] = (), peers: tuple[float, ...] = (), **options):
    job = TestJobEvidence(TestJobOutcome.PASSED, "It completed.", value=value, past=past, peers=peers)
    return evaluated(a_target(test_job=job), metric="sum", at_most_worse_percent=10, **options)


def test_a_result_is_compared_with_the_nodes_own_past():
    assert compared(91, past=(100, 99, 500)).answer is Answer.PASS

    result = compared(89, past=(100, 100, 10), peers=(1, 1, 1, 1))

    assert (result.answer, result.cause, result.nodes) == (Answer.FAIL, "worse", ("node-1",))
    assert result.summary == "sum is 11 % worse than its baseline."
    assert values_of(result)["node-1: worse by"] == "11.0 % than 100 (3 earlier results of the node)"


def test_a_node_without_a_past_is_compared_with_four_peers():
    assert compared(80, peers=(100, 100, 100, 100)).answer is Answer.FAIL
    assert compared(80, peers=(100, 100, 100, 100), higher_is_better=False).answer is Answer.PASS

    few = compared(80, peers=(100, 100, 100))

    assert (few.answer, few.cause) == (Answer.WAIT, "few-results")
    assert "4 peers" in few.summary


def test_failure_timeout_no_number_and_too_few_results_are_four_answers():
    def cause(outcome: TestJobOutcome, **given):
        job = TestJobEvidence(outcome, "It is told.", **given)
        return evaluated(a_target(test_job=job), metric="sum", at_most_worse_percent=10).cause

    failed, passed = TestJobOutcome.FAILED, TestJobOutcome.PASSED
    causes = [cause(failed), cause(failed, has_timed_out=True), cause(passed), cause(passed, value=1.0)]
    assert causes == ["failed", "timed-out", "no-number", "few-results"]
