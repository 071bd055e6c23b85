from datetime import timedelta

import pytest

from rollouts.lifecycle import TargetState
from rollouts.models import Target, TestJob
from rollouts.preflight.canary_proof import proof_for
from tests import make
from tests.make import NOON
from tests.rollouts.rows import a_driver_cluster, a_started_plan, answered, opened

pytestmark = pytest.mark.django_db
OLD_KERNEL, NEW_KERNEL = {"kernel": "5.15"}, {"kernel": "6.8"}


@pytest.fixture
def rest():
    """The stage after a canary of one node, of a plan for five nodes; two later ones have another kernel."""
    plan = a_started_plan(a_driver_cluster(nodes=5), make.a_user("ada", role="operator"))
    stage = opened(plan, 1)
    Target.objects.update(facts=OLD_KERNEL)
    later = list(stage.targets.order_by("position").values_list("pk", flat=True))
    Target.objects.filter(pk__in=later[-2:]).update(facts=NEW_KERNEL)
    return stage


def canary(stage):
    return stage.plan.stages.get(index=0).targets


def test_before_the_first_change_it_says_what_the_canary_can_prove(rest):
    proof = proof_for(rest.plan.stages.get(index=0))

    assert proof.sentence == (
        "If the one canary node does not fail, the failure rate of all nodes is at most 95 % (95 % confidence)."
    )
    assert proof.missing == ["No canary node has kernel 6.8; 2 later nodes do."]


def test_a_changed_node_without_a_workload_proves_nothing(rest):
    canary(rest).update(state=TargetState.CHANGED)

    proof = proof_for(rest)

    assert (proof.changed, proof.tested, proof.failure_rate_at_most) == (1, 0, 1.0)
    assert proof.sentence.startswith("No changed node is tested")
    assert "No tested node has kernel 5.15; 2 later nodes do." in proof.missing


def test_each_tested_node_bounds_the_failure_rate(rest):
    canary(rest).update(state=TargetState.CHANGED, tenants_ready_at=NOON)
    first, second = rest.targets.order_by("position")[:2]
    Target.objects.filter(pk__in=[first.pk, second.pk]).update(state=TargetState.CHANGED)
    TestJob.objects.create(
        plan=rest.plan, node_uid=first.node_uid, node_name=first.node_name, namespace="gpu-operator", image="test",
        resource="nvidia.com/gpu", amount=1, intended_at=NOON, outcome="passed",
    )  # fmt: skip

    TestJob.objects.filter(node_uid=first.node_uid).update(gone_at=NOON)
    TestJob.objects.create(  # it is tested again
        plan=rest.plan, node_uid=first.node_uid, node_name=first.node_name, namespace="gpu-operator", image="test",
        resource="nvidia.com/gpu", amount=1, intended_at=NOON,
    )  # fmt: skip

    proof = proof_for(rest)

    assert (proof.changed, proof.tested, proof.failed) == (3, 2, 0)
    assert proof.sentence == (
        "0 failures of 2 tested nodes bound the failure rate at 78 % (95 % confidence). 1 changed node is not tested."
    )
    assert proof.missing == ["No tested node has kernel 6.8; 2 later nodes do."]


def test_what_ran_before_a_node_changed_again_proves_nothing_nor_does_a_pass_before_a_failure(rest):
    """The gate counts neither."""
    earlier, later = NOON - timedelta(seconds=1), NOON + timedelta(seconds=1)
    canary(rest).update(state=TargetState.CHANGED, state_since=NOON, tenants_ready_at=earlier)
    first, second = rest.targets.order_by("position")[:2]
    Target.objects.filter(pk__in=[first.pk, second.pk]).update(state=TargetState.CHANGED, state_since=NOON)
    for node, at, outcome in ((first, earlier, "passed"), (second, NOON, "passed"), (second, later, "failed")):
        TestJob.objects.create(
            plan=rest.plan, node_uid=node.node_uid, node_name=node.node_name, namespace="gpu-operator", image="test",
            resource="nvidia.com/gpu", amount=1, intended_at=at, outcome=outcome, gone_at=at,
        )  # fmt: skip

    assert (proof_for(rest).changed, proof_for(rest).tested) == (3, 0)


def test_a_failed_node_is_counted_as_tested(rest):
    canary(rest).update(state=TargetState.FAILED)

    assert proof_for(rest).sentence == "1 failure of 1 tested node bounds the failure rate at 100 % (95 % confidence)."


def test_a_node_that_a_failing_gate_names_is_a_failure(rest):
    canary(rest).update(state=TargetState.CHANGED, tenants_ready_at=NOON)
    named = list(canary(rest).values_list("node_name", flat=True))
    answered(rest.plan.stages.get(index=0), "xid", "fail", nodes=named)

    assert (proof_for(rest).tested, proof_for(rest).failed) == (1, 1)
