"""Thresholds of a test from passes of other nodes of the pool. Too few of them judge nothing."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from fleet.models import Node, Pool
from operations.models import NodeTestJob
from operations.test_jobs.node_tests import NODE_TESTS
from operations.test_jobs.test_progress import TestJobOutcome, TestJobProgress
from operations.test_thresholds import FEWEST, compared, thresholds_of
from tests.make import NOON, a_cluster, a_node, a_pool, an_operation

pytestmark = pytest.mark.django_db
NCCL, PATH = NODE_TESTS["nccl"], "average_bus_bandwidth.bandwidth"
LATENCY, SAMPLES = "inter_token_latency.p99", "request_count.avg"
COMPLETED = TestJobProgress("It completed.", outcome=TestJobOutcome.PASSED)


def a_pass(node: Node, speed: float, *, at: datetime = NOON, **given: Any) -> NodeTestJob:
    row = {
        "test": "nccl", "command": NCCL.command_on(8), "outcome": "passed", "namespace": "x", "image": "x",
        "resource": "nvidia.com/gpu", "amount": 8, "deadline_s": 3600, "intended_at": at, "told_at": at, "gone_at": at,
        "gpu_product": "NVIDIA-H200", "numbers": {PATH: speed}, "node_uid": node.uid, "node_name": node.name,
    }  # fmt: skip
    return NodeTestJob.objects.create(operation=an_operation(node.cluster, steps=("test_job",)), **row | given)


def a_pool_with_passes(*speeds: float) -> tuple[Pool, NodeTestJob]:
    """Returns the pool and the test of one more node of it."""
    pool = a_pool(a_cluster())
    for speed in speeds:
        a_pass(a_node(pool.cluster, pool=pool), speed)
    return pool, a_pass(a_node(pool.cluster, "mended", pool=pool), 400)


def judged(row: NodeTestJob, value: float) -> TestJobProgress:
    return compared(COMPLETED, {PATH: value}, thresholds_of(row, now=NOON))


def test_a_number_is_compared_with_the_median_of_the_pool():
    _, row = a_pool_with_passes(440, 450, 460, 470, 480)
    (threshold,) = thresholds_of(row, now=NOON)
    assert (threshold.limit, threshold.passes) == (414, FEWEST)

    slow = judged(row, 413)
    assert slow.outcome is TestJobOutcome.FAILED
    assert slow.says == (
        "It is slower than the pool. Bus bandwidth 413 GB/s, of at least 414 by 5 other nodes of the pool."
    )
    assert judged(row, 415).outcome is TestJobOutcome.PASSED


def test_a_percentage_of_the_gate_replaces_that_of_the_metric():
    _, row = a_pool_with_passes(440, 450, 460, 470, 480)
    (threshold,) = thresholds_of(row, now=NOON, worse_percent=50)
    assert threshold.limit == 230


def test_too_few_passes_judge_nothing():
    _, row = a_pool_with_passes(440, 450, 460, 470)
    found = judged(row, 1)
    assert found.outcome is TestJobOutcome.PASSED
    assert found.says.endswith("measured, not judged: 4 of the 5 passes needed from other nodes.")


def test_a_number_that_is_not_printed_is_unknown():
    _, row = a_pool_with_passes(440, 450, 460, 470, 480)
    found = compared(COMPLETED, {}, thresholds_of(row, now=NOON))
    assert (found.outcome, found.says) == (TestJobOutcome.UNKNOWN, "It printed no Bus bandwidth.")


def test_only_newest_passes_of_other_nodes_of_the_pool_on_the_same_gpus_count():
    pool, row = a_pool_with_passes(450, 450, 450, 450)
    peer = Node.objects.filter(pools=pool).exclude(name="mended")[0]
    elsewhere = a_node(pool.cluster, "elsewhere")
    for given in (
        {"outcome": "failed"}, {"gpu_product": "NVIDIA-B200"}, {"amount": 4}, {"told_at": NOON - timedelta(days=91)},
        {"numbers": None},
    ):  # fmt: skip
        a_pass(a_node(pool.cluster, pool=pool), 900, **given)
    a_pass(elsewhere, 900)
    a_pass(peer, 100, at=NOON - timedelta(hours=1))  # an older one of a node with a newer pass
    (threshold,) = thresholds_of(row, now=NOON)
    assert (threshold.limit, threshold.passes) == (None, 4)


def test_a_command_of_ones_own_is_not_compared():
    _, row = a_pool_with_passes(440, 450, 460, 470, 480)
    row.command = "my-test"
    assert thresholds_of(row, now=NOON) == []


def test_a_number_of_too_few_samples_is_not_judged_and_judges_no_other():
    pool = a_pool(a_cluster())
    test = next(test for test in NODE_TESTS.values() if LATENCY in test.numbers)
    serving = {"test": test.key, "command": f"{test.runs} profile"}
    enough = dict.fromkeys(test.numbers, 10) | {SAMPLES: 100}
    for numbers in (*[enough] * FEWEST, enough | {LATENCY: 900, SAMPLES: 3}):
        a_pass(a_node(pool.cluster, pool=pool), 0, numbers=numbers, **serving)
    row = a_pass(a_node(pool.cluster, "mended", pool=pool), 0, **serving)
    thresholds = thresholds_of(row, now=NOON)

    thin = compared(COMPLETED, enough | {LATENCY: 900, SAMPLES: 3}, thresholds)
    slow = compared(COMPLETED, enough | {LATENCY: 900}, thresholds)

    assert {threshold.passes for threshold in thresholds} == {FEWEST}
    assert thin.outcome is TestJobOutcome.PASSED
    assert "900 ms: measured, not judged: 3 of the 100 samples needed." in thin.says
    assert slow.outcome is TestJobOutcome.FAILED
