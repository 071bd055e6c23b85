from datetime import timedelta

import pytest

from fleet.models import Gpu
from operations.models import NodeTestJob, Operation
from rollouts.gates.base import MetricResult
from rollouts.models import TestJob
from rollouts.queries.test_results import baselines_of, results_of, series_of
from tests import make
from tests.make import NOON
from tests.pages import page, visiting
from tests.rollouts.rows import a_driver_cluster, a_started_plan

pytestmark = pytest.mark.django_db
OLD = "570.172.08"


@pytest.fixture
def plan():
    return a_started_plan(a_driver_cluster(), make.a_user("ada", role="operator"))


def a_result(plan, node: str, value: float | None, *, days: int = 1, **given) -> TestJob:
    its = plan.cluster.nodes.get(name=node)
    row = {
        "namespace": "gpu-operator", "image": "nvbandwidth", "resource": "nvidia.com/gpu", "amount": 8,
        "metric": "sum", "driver_version": OLD, "gpu_product": "H100", "outcome": "passed", "says": "It completed.",
        "intended_at": NOON - timedelta(days=days), "told_at": NOON - timedelta(days=days), "gone_at": NOON,
    }  # fmt: skip
    return TestJob.objects.create(plan=plan, node_uid=its.uid, node_name=node, value=value, **row | given)


def test_a_baseline_is_of_the_same_job_with_another_driver(plan):
    names = sorted(plan.cluster.nodes.values_list("name", flat=True))
    now = a_result(plan, names[0], 90, days=0, driver_version=plan.to_version)
    a_result(plan, names[0], 100, days=2)
    a_result(plan, names[0], 101, days=1)
    a_result(plan, names[1], 99)
    for other in (
        {"metric": "max"}, {"image": "another"}, {"gpu_product": "A100"}, {"amount": 1}, {"outcome": "failed"},
        {"driver_version": ""}, {"driver_version": plan.to_version}, {"days": 400},
    ):  # fmt: skip
        a_result(plan, names[2], 1, **other)

    assert baselines_of(plan, [now]).of(now) == {"sum": MetricResult(90, (101, 100), (99,))}


def test_without_a_number_nothing_is_read(plan, django_assert_num_queries):
    node = plan.cluster.nodes.order_by("name").first()
    row = a_result(plan, node.name, None)

    with django_assert_num_queries(0):
        assert baselines_of(plan, [row]).of(row) == {}


def test_page_and_rest_list_the_results_of_a_node_newest_first(plan):
    node = plan.cluster.nodes.order_by("name").first()
    a_result(plan, node.name, 412.5, days=2)
    a_result(plan, node.name, None, outcome="failed", says="The test ended with exit code 1.")
    a_result(plan, node.name, None, outcome="", told_at=None, gone_at=None)
    ada = visiting(make.a_user("eva", role="viewer"))

    seen = page(ada, f"/parts/nodes/{node.pk}/test-results").text
    told = ada.get(f"/api/v1/nodes/{node.pk}/test-results").json()["results"]

    assert [row.outcome for row in results_of(node)] == ["failed", "passed"]
    assert [(row["outcome"], row["value"], row["driver_version"]) for row in told] == [
        ("failed", None, OLD), ("passed", 412.5, OLD),
    ]  # fmt: skip
    assert "passed sum 412.5 " + OLD in seen


def an_operations_result(plan, node: str, numbers: dict, **given) -> NodeTestJob:
    its = plan.cluster.nodes.get(name=node)
    operation = Operation.objects.create(
        cluster=plan.cluster, steps=["test_job"], asked_at=NOON, state_since=NOON, lease_until=NOON, next_look_at=NOON
    )
    row = {
        "namespace": "gpu-operator", "image": "nvbandwidth", "resource": "nvidia.com/gpu", "amount": 8,
        "driver_version": OLD, "gpu_product": "H100", "outcome": "passed", "test": "nvbandwidth", "deadline_s": 60,
        "intended_at": NOON, "told_at": NOON - timedelta(days=3), "gone_at": NOON,
    }  # fmt: skip
    return NodeTestJob.objects.create(
        operation=operation, node_uid=its.uid, node_name=node, numbers=numbers, **row | given
    )


def test_a_test_of_an_operation_is_a_baseline_too(plan):
    name = sorted(plan.cluster.nodes.values_list("name", flat=True))[0]
    now = a_result(plan, name, 90, days=0, driver_version=plan.to_version, numbers={"sum": 90, "max": 30})
    an_operations_result(plan, name, {"sum": 100, "max": 40})
    a_result(plan, name, 101, days=1)

    assert baselines_of(plan, [now]).of(now) == {"sum": MetricResult(90, (101, 100)), "max": MetricResult(30, (40,))}


def test_an_earlier_number_of_too_few_samples_is_no_baseline(plan):
    names = sorted(plan.cluster.nodes.values_list("name", flat=True))
    rate, samples = "output_token_throughput.avg", "request_count.avg"

    def printed(node: str, value: float, requests: int, **given) -> TestJob:
        return a_result(plan, node, None, test="llm", numbers={rate: value, samples: requests}, **given)

    now = printed(names[0], 90, 200, days=0, driver_version=plan.to_version)
    printed(names[0], 10, 99, days=2)
    printed(names[0], 100, 100, days=3)
    an_operations_result(plan, names[1], {rate: 11, samples: 3}, test="llm")

    assert baselines_of(plan, [now]).of(now)[rate] == MetricResult(90, (100,))


def test_a_series_is_of_one_kind_of_job_by_driver_and_without_its_samples(plan):
    node = plan.cluster.nodes.order_by("name").first()
    gpu = Gpu.objects.create(node=node, index=40, uuid="GPU-40")
    llm = {"output_token_throughput.avg": 900.0, "request_count.avg": 200.0}
    a_result(plan, node.name, 900, days=1, test="llm", numbers=llm, gpu_uuids=[gpu.uuid], image="llm", amount=1)
    a_result(plan, node.name, 400, days=3)
    a_result(plan, node.name, 410, days=2, driver_version=plan.to_version)

    throughput, bandwidth = series_of(node)

    assert (throughput.title, throughput.test, throughput.unit) == ("Throughput", "LLM smoke test", "tokens/s")
    assert [(point.value, point.name) for point in bandwidth.points] == [(400, OLD), (410, plan.to_version)]
    assert series_of(node, gpu_uuid=gpu.uuid) == [throughput]

    seen = page(visiting(make.a_user("eva", role="viewer")), f"/parts/nodes/{node.pk}/gpus/40/test-results").text
    assert "Throughput" in seen
    assert "sum" not in seen
