"""Hazards Z8, Z27: nothing is proven by a Job that did not complete since the change."""

import pytest

from gpu.labels import GPU
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.base import NO_TARGET, TO_COME, Answer, MetricResult, TestJobEvidence
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
        ({"template": "own"}, "template is one of dcgm-2, .*; or name an image"),
        ({"template": "vectoradd", "at_most_worse_percent": 5}, "needs metric, or a template with metrics"),
        ({"image": "a b"}, "image must be the name of one image, without blanks"),
    ],
)
def test_what_would_test_nothing_is_refused(options: dict, says: str):
    with pytest.raises(BadGate, match=says):
        read_gates({"test_job": options})


def job_with(**numbers: MetricResult) -> TestJobEvidence:
    return TestJobEvidence(TestJobOutcome.PASSED, "It completed.", numbers=numbers)


LIMITED = {"metric": "testcases.0.sum", "at_least": 150}


def measured(name: str = "node-1", value: float | None = None, metric: str = "testcases.0.sum"):
    return a_target(name, test_job=job_with(**{} if value is None else {metric: MetricResult(value)}))


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
    result = evaluated(measured("node-1", value, options.get("metric", "sum")), **options)

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
    job = job_with(sum=MetricResult(value, past, peers))
    return evaluated(a_target(test_job=job), metric="sum", at_most_worse_percent=10, **options)


def test_a_result_is_compared_with_the_nodes_own_past():
    assert compared(91, past=(100, 99, 500)).answer is Answer.PASS

    result = compared(89, past=(100, 100, 10), peers=(1, 1, 1, 1))

    assert (result.answer, result.cause, result.nodes) == (Answer.FAIL, "worse", ("node-1",))
    assert result.summary == "sum is 11 % worse than its baseline."
    assert values_of(result)["node-1: worse by"] == "11.0 % than 100 (3 earlier results of the node)"


@pytest.mark.parametrize(
    ("past", "expected"),
    [
        ((100, 100, 100), "0.0 % (n = 3)"),
        ((100, 98, 102, 101, 99), "3.7 % (n = 5)"),  # 2.132 · 1.581 · √1.2
        ((100, 98), "unknown: n = 2, and the scatter needs 3"),
    ],
)
def test_the_answer_says_the_smallest_change_that_it_can_detect(past, expected):
    assert values_of(compared(99, past=past))["node-1: smallest detectable change"] == expected


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
    causes = [
        cause(failed),
        cause(failed, has_timed_out=True),
        cause(passed),
        cause(passed, numbers={"sum": MetricResult(1.0)}),
    ]
    assert causes == ["failed", "timed-out", "no-number", "few-results"]


LLM = {
    "output_token_throughput.avg": MetricResult(950.0, past=(1000.0,)),
    "time_to_first_token.p99": MetricResult(210.0, past=(200.0,)),
    "inter_token_latency.p99": MetricResult(20.0),
    "request_count.avg": MetricResult(200.0),
}


@pytest.mark.parametrize(
    ("changed", "options", "expected", "cause"),
    [
        ({}, {}, Answer.PASS, ""),
        ({"output_token_throughput.avg": MetricResult(890.0, past=(1000.0,))}, {}, Answer.FAIL, "worse"),
        ({"time_to_first_token.p99": MetricResult(251.0, past=(200.0,))}, {}, Answer.FAIL, "worse"),
        ({"time_to_first_token.p99": MetricResult(100.0, past=(200.0,))}, {}, Answer.PASS, ""),
        ({"request_count.avg": MetricResult(99.0)}, {}, Answer.WAIT, "few-samples"),
        ({"request_count.avg": None}, {}, Answer.WAIT, "few-samples"),
        (
            {"request_count.avg": MetricResult(3.0), "time_to_first_token.p99": MetricResult(900.0, past=(200.0,))},
            {},
            Answer.WAIT,
            "few-samples",
        ),
        ({"time_to_first_token.p99": None}, {}, Answer.WAIT, "no-number"),
        ({}, {"at_most_worse_percent": 4}, Answer.FAIL, "worse"),
        ({}, {"at_most_worse_percent": 6}, Answer.WAIT, "few-results"),
    ],
)
def test_a_template_judges_each_of_its_metrics(changed, options, expected, cause):
    numbers = {path: result for path, result in (LLM | changed).items() if result}
    result = evaluated(a_target(test_job=job_with(**numbers)), template="llm", **options)

    assert (result.answer, result.cause) == (expected, cause)


@pytest.mark.parametrize(
    ("options", "offers", "request_"),
    [
        ({}, {GPU: 8}, (GPU, 1)),
        ({"template": "nccl"}, {GPU: 8}, (GPU, 8)),
        ({"template": "nccl", "gpus": 2}, {GPU: 8}, (GPU, 2)),
        ({"template": "llm"}, {GPU: 8}, (GPU, 1)),
        ({"template": "nccl"}, {"nvidia.com/mig-1g.10gb": 7}, ("nvidia.com/mig-1g.10gb", 1)),
        ({"template": "nccl"}, {GPU: 0}, ("", 1)),
    ],
)
def test_a_template_of_all_gpus_requests_all_whole_ones(options, offers, request_):
    assert TestJobGate(**options).request_on(offers) == request_
