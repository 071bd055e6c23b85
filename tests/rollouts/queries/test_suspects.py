"""The suspects of a plan: which nodes count as failed, as good, and as neither."""

from dataclasses import replace
from datetime import timedelta

import pytest

from health.evaluation.node_properties import properties_of
from health.suspects import Suspects
from operations.models import DomainBudget
from rollouts.models import GateAnswer, Plan, Target, TestJob
from rollouts.queries.plan_view import plan_on_page
from tests.make import NOON, a_pod, a_user
from tests.pages import page, visiting
from tests.rollouts.rows import CANARY, a_driver_cluster, a_started_plan

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
KERNELS = ["5.15", "5.15", "6.8", "6.8", "6.8"]
FAILED = {"state": "failed", "reason": "Its driver does not load."}


def a_changed_plan(kernels: list[str]) -> Plan:
    """A plan whose nodes have all changed."""
    cluster = a_driver_cluster(nodes=len(kernels))
    stages = (replace(CANARY, count=len(kernels)),)
    plan = a_started_plan(cluster, a_user("ada", role="operator"), stages=stages)
    for number, kernel in enumerate(kernels):
        change(plan, f"node-{number}", state="changed", facts={"kernel": kernel, "zone": "a"})
    return plan


def change(plan: Plan, node: str, **columns) -> None:
    assert Target.objects.filter(stage__plan=plan, node_name=node).forward().update(**columns) == 1


def a_failing_gate(plan: Plan, gate: str, *nodes: str, **given) -> None:
    row = {"gate": gate, "answer": "fail", "title": "Broken", "nodes": list(nodes), "since": NOON, "at": NOON}
    GateAnswer.objects.create(stage=plan.stages.get(index=0), **row | given)


def suspects(plan: Plan) -> Suspects | None:
    return plan_on_page(Plan.objects.select_related("cluster").get(pk=plan.pk), now=NOON).suspects


def test_a_plan_without_failed_nodes_has_no_suspects():
    assert suspects(a_changed_plan(KERNELS)) is None


def test_failed_nodes_are_compared_with_changed_ones():
    plan = a_changed_plan(KERNELS)
    change(plan, "node-0", **FAILED)
    change(plan, "node-1", **FAILED)
    change(plan, "node-4", state="changing")

    found = suspects(plan)

    assert found
    assert (found.failed, found.good) == (2, 2)
    assert found.suspects[0].properties == (("kernel", "5.15"),)
    assert "GPU" in found.unknown


def test_a_node_that_failed_before_it_took_the_driver_is_neither_failed_nor_good():
    """An eviction that a budget refuses says nothing about the driver."""
    plan = a_changed_plan(KERNELS)
    nodes = {node.name: node for node in plan.cluster.nodes.all()}
    for name, created_at in (("node-0", NOON + HOUR), ("node-1", NOON + HOUR), ("node-4", NOON - HOUR)):
        change(plan, name, **FAILED, released_at=NOON)
        a_pod(nodes[name], operand="driver", is_tenant=False, created_at=created_at)

    found = suspects(plan)

    assert found
    assert (found.failed, found.good) == (2, 2)
    assert found.suspects[0].properties == (("kernel", "5.15"),)


def test_the_rack_of_the_failed_nodes_is_a_suspect_too():
    plan = a_changed_plan(["6.8"] * 5)
    label = "topology.example.com/rack"
    DomainBudget.objects.create(cluster=plan.cluster, kind="rack", max_unavailable=1, label=label, by="ada", at=NOON)
    for number, node in enumerate(plan.cluster.nodes.order_by("name")):
        node.labels[label] = "r1" if number < 2 else "r2"
        node.save(update_fields=["labels"])
    change(plan, "node-0", **FAILED)
    change(plan, "node-1", **FAILED)

    found = suspects(plan)

    assert found
    assert ("rack", "r1") in found.suspects[0].properties


def test_the_plan_that_changed_nodes_last_is_a_property_of_theirs():
    """lifecycle R52: automatic quarantine names it, and imports no plan."""
    plan = a_changed_plan(["6.8"] * 3)
    change(plan, "node-1", state="held")
    found = properties_of(plan.cluster.nodes.all(), plan.cluster_id)

    assert {name: its["plan"] for name, its in found.items()} == {
        "node-0": frozenset({str(plan.pk)}), "node-1": frozenset(), "node-2": frozenset({str(plan.pk)}),
    }  # fmt: skip
    Target.objects.update(state="held")
    assert all("plan" not in its for its in properties_of(plan.cluster.nodes.all(), plan.cluster_id).values())


def test_nodes_that_a_failing_gate_names_have_failed_though_they_changed():
    plan = a_changed_plan(KERNELS)
    a_failing_gate(plan, "allocatable_restored", "node-0", "node-1")
    a_failing_gate(plan, "operands_ready", "node-2", is_advisory=True)

    found = suspects(plan)

    assert found
    assert (found.failed, found.good) == (2, 3)


def test_an_idle_node_is_no_good_node_where_workloads_fail():
    """Without a workload a node tells nothing about the failure of workloads."""
    plan = a_changed_plan(KERNELS)
    a_failing_gate(plan, "workloads_ready", "node-0", "node-1")
    change(plan, "node-2", tenants_ready_at=NOON)
    uid = Target.objects.get(stage__plan=plan, node_name="node-3").node_uid
    job = {"namespace": "ns", "image": "i", "resource": "nvidia.com/gpu", "amount": 1, "intended_at": NOON}
    TestJob.objects.create(plan=plan, node_uid=uid, node_name="node-3", outcome="passed", **job)

    found = suspects(plan)

    assert found
    assert (found.failed, found.good) == (2, 2)
    Target.objects.filter(stage__plan=plan).update(state_since=NOON + timedelta(seconds=1))  # they changed again
    assert suspects(plan).good == 0


def test_image_and_cuda_of_the_pods_that_fail_are_one_suspect():
    plan = a_changed_plan(["6.8"] * 8)
    nodes = {node.name: node for node in plan.cluster.nodes.all()}
    bad, good = "team/serve:2-cuda13.0", "team/serve:1-cuda12.4"
    for number in range(8):
        node = f"node-{number}"
        change(plan, node, tenants_ready_at=NOON)
        a_pod(nodes[node], image=bad if number < 4 else good, is_ready=number >= 4)
        a_pod(nodes[node], image=good)
    a_failing_gate(plan, "workloads_ready", *(f"node-{number}" for number in range(4)))

    found = suspects(plan)

    assert found
    assert found.suspects[0].properties == (("image", bad), ("CUDA of the image", "13.0"))
    assert found.suspects[0].is_cause
    nodes["node-4"].pods.filter(is_tenant=True).update(image="team/serve:latest")
    assert "CUDA of the image" in suspects(plan).unknown


def test_page_and_rest_show_the_suspects():
    plan = a_changed_plan(KERNELS)
    change(plan, "node-0", **FAILED)
    viewer = visiting(a_user(role="viewer"))

    text = page(viewer, f"/plans/{plan.pk}").text
    answer = viewer.get(f"/api/v1/plans/{plan.pk}").json()["suspects"]

    assert "Candidates; too few nodes for proof" in text
    assert "kernel 5.15 1 of 1 1 of 4 0.4000 0.4000 Candidate" in text
    assert answer["title"] == "Candidates; too few nodes for proof"
    assert answer["suspects"][0]["properties"] == [{"name": "kernel", "value": "5.15"}]
    assert (answer["failed"], answer["good"]) == (1, 4)
