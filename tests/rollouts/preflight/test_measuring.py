"""What the gates of a draft could not tell on its nodes is named, with the ways out."""

from dataclasses import replace
from typing import Any

import pytest

from fleet.models import DriverObject, Node
from rollouts.checks import Check
from rollouts.commands.preview import preview
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import StageKind
from tests.make import NOON, a_pod
from tests.rollouts.make import steps_of
from tests.rollouts.rows import CANARY, GATES, POLICY, REST, a_draft


def warned(cluster, owner, *codes: str, **gates: dict[str, Any]) -> list[Check]:
    stages = [replace(stage, gate_options=stage.gate_options | gates) for stage in (CANARY, REST)]
    plan = a_draft(cluster, owner, stages=stages)
    return [check for check in preview(plan, now=NOON).warnings if check.code in codes]


def a_validator_on(*names: str) -> None:
    for node in Node.objects.filter(name__in=names):
        a_pod(node, f"validator-{node.name}", namespace="gpu-operator", gpus=0, operand="operator-validator")


def test_a_node_without_a_validator_is_named_with_its_remedies(cluster, owner):
    a_validator_on("node-0", "node-1")

    (check,) = warned(cluster, owner, "unmeasured", validator_passed={})

    assert check.sentence == "node-2 runs no validator. Validator of Rest would wait forever."
    assert "gpu.deploy.operator-validator" in steps_of(check)
    assert "advisory, with a reason" in steps_of(check)
    assert check.is_grave


def test_nothing_is_said_where_all_can_be_measured_or_nothing_counts(cluster, owner):
    assert warned(cluster, owner, "unmeasured", validator_passed={"advisory": True}) == []
    a_validator_on("node-0", "node-1", "node-2")
    assert warned(cluster, owner, "unmeasured", validator_passed={}, operands_ready={}) == []


@pytest.mark.parametrize(
    ("gate", "given", "says"),
    [
        ("driver_version", {"driver_unknown_since": NOON}, "node-1 reports no driver version"),
        ("allocatable_restored", {"allocatable": {}}, "node-1 offers no GPUs"),
        ("test_job", {"allocatable": {}}, "node-1 offers no GPU for a test Job"),
    ],
)
def test_what_a_node_does_not_say_is_named(cluster, owner, gate: str, given: dict[str, Any], says: str):
    Node.objects.filter(name="node-1").update(**given)

    (check,) = warned(cluster, owner, "unmeasured", **{gate: {}})

    assert check.title == says


def test_a_stage_without_tenants_proves_nothing_of_them(cluster, owner):
    a_pod(Node.objects.get(name="node-1"))

    checks = warned(cluster, owner, "unmeasured", workloads_ready={})

    assert len(checks) == 1
    assert "No tenant's GPU pod runs on" in checks[0].sentence
    assert steps_of(checks[0]) == "Add the gate Test Job, or pick nodes with tenants."
    assert warned(cluster, owner, "unmeasured", workloads_ready={}, test_job={}) == []


def test_of_the_gate_that_waits_for_tenants_it_is_said_that_it_will(cluster, owner):
    a_pod(Node.objects.get(name="node-1"))

    (check,) = warned(cluster, owner, "unmeasured", exposure={})

    assert "The gate Exposure waits until tenants or test Jobs have worked there." in check.sentence
    assert "wait_timeout_s" in steps_of(check)
    assert not check.is_grave
    assert warned(cluster, owner, "unmeasured", exposure={"gpu_minutes": 1}, test_job={}) == []
    assert warned(cluster, owner, "unmeasured", exposure={"advisory": True}) == []


def test_a_first_stage_that_no_workload_must_pass_is_named(cluster, owner):
    (check,) = warned(cluster, owner, "unproven")

    assert check.is_grave
    assert check.title == f"No gate of {CANARY.name} needs a workload"
    assert warned(cluster, owner, "unproven", workloads_ready={}) == []
    assert len(warned(cluster, owner, "unproven", test_job={"advisory": True})) == 1


def test_a_plan_of_one_stage_that_no_workload_must_pass_is_named(cluster, owner):
    plan = a_draft(cluster, owner, stages=(CANARY,))

    (check,) = (each for each in preview(plan, now=NOON).warnings if each.code == "unproven")

    assert check.summary == "The plan ends without proof that GPU workloads run on the new driver."


def test_the_hours_of_slow_drift_are_compared_with_soak_and_limit(cluster, owner):
    (check, _) = warned(cluster, owner, "unmeasured", drift={"hours": 2}, soak={"duration_s": 1800})

    asks = "The soak of 30 min begins after these hours. The gate asks a person after 1 h."
    assert check.sentence == f"Slow drift needs up to 3 h of telemetry in Canary. {asks}"
    assert "wait_timeout_s" in steps_of(check)
    enough = {"hours": 2, "wait_timeout_s": 10800}
    (check, _) = warned(cluster, owner, "unmeasured", drift=enough, soak={"duration_s": 1800})
    assert "asks a person" not in check.sentence
    assert warned(cluster, owner, "unmeasured", drift=enough, soak={"duration_s": 10800}) == []
    assert warned(cluster, owner, "unmeasured", drift={"advisory": True}) == []


def test_work_on_more_nodes_than_a_stage_has_is_named(cluster, owner):
    for node in Node.objects.all():
        a_pod(node)

    (check,) = warned(cluster, owner, "unmeasured", exposure={"nodes": 2})

    assert check.sentence == "The gate needs work on 2 nodes; the stage has 1. Exposure of Canary would wait forever."
    assert check.is_grave


@pytest.mark.parametrize(
    ("options", "is_grave", "says"),
    [
        ({}, True, "would wait forever."),
        ({"advisory": True}, False, "is advisory and delays nothing."),
    ],
)
def test_the_room_that_the_first_wave_lacks_is_said_also_where_it_does_not_count(
    cluster, owner, options, is_grave, says
):
    Node.objects.update(requested={"nvidia.com/gpu": 8}, gpu_product="H100")
    for node in Node.objects.all():
        a_pod(node, gpus=8)

    checks = warned(cluster, owner, "headroom", headroom=options)

    assert {check.is_grave for check in checks} == {is_grave}
    assert checks[0].title == "1 of 1 GPU pod of the next wave fits on no other node"
    assert bool(steps_of(checks[0])) is is_grave
    assert checks[0].summary == f"Headroom of Canary {says}"


@pytest.mark.parametrize(("allowed", "codes"), [("100%", ["headroom"]), (1, [])])
def test_room_is_looked_for_as_many_nodes_as_may_go_at_once(cluster, owner, allowed, codes):
    """The stage allows two; where the operator lets one be unavailable, eight GPUs elsewhere are room enough."""
    Node.objects.update(gpu_product="H100")
    policies = DriverObject.objects.filter(kind="ClusterPolicy")
    policies.update(upgrade_policy=POLICY | {"maxUnavailable": allowed})
    gates = GATES | {"headroom": {}}
    wide = StageDraft("Rest", StageKind.POOL, gate_options=gates, max_unavailable=2)
    plan = a_draft(cluster, owner, stages=(CANARY, wide))
    canary, rest = preview(plan, now=NOON).stages
    for name in rest.targets:
        a_pod(Node.objects.get(name=name), gpus=8)
    a_pod(Node.objects.get(name=canary.targets[0]))  # it stays the canary: tenants that are harmed least

    assert [check.code for check in preview(plan, now=NOON).warnings if check.code == "headroom"] == codes
