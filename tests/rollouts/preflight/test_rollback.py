"""What a rollback would break is said before it is asked for, and bars none (hazard Z32)."""

import pytest

from fleet.models import Node, Pod
from rollouts.models import Target
from rollouts.preflight.rollback import rollback_checks
from rollouts.reads.on_page import plan_on_page
from tests.make import NOON, a_pod
from tests.rollouts.rows import a_started_plan, in_state


@pytest.fixture
def plan(cluster, owner):
    """Halted, with its canary changed, to which a pod has come that needs the new driver."""
    plan = in_state(a_started_plan(cluster, owner), "halted")
    target = Target.objects.get(stage__plan=plan, stage__index=0)
    Target.objects.filter(pk=target.pk).update(state="changed")
    for node in cluster.nodes.all():
        a_pod(node, f"on-{node.name}", image="nvidia/cuda:13.0.0-base")
    plan.canary = target.node_name
    Node.objects.filter(cluster=cluster, name=plan.canary).update(driver_version=plan.to_version)
    return plan


def told(plan):
    return rollback_checks(plan_on_page(plan, now=NOON))


def test_pods_on_changed_nodes_that_the_old_driver_does_not_run_are_named(plan):
    (check,) = told(plan)

    assert check.sentence == f"team-a/on-{plan.canary} is built with a CUDA too new for driver {plan.from_version}."


def test_an_image_that_runs_on_the_old_driver_elsewhere_is_known_to(plan):
    """On this plan's other nodes, which still have it."""
    Pod.objects.filter(is_tenant=True).update(image="team/serve:1")
    held = Pod.objects.filter(is_tenant=True).exclude(node_name=plan.canary)

    assert told(plan) == []
    held.update(is_ready=False)
    assert [check.code for check in told(plan)] == ["cuda-unknown"]


def test_an_image_is_not_proven_where_nothing_says_which_driver_it_runs_on(plan):
    Pod.objects.filter(is_tenant=True).update(image="team/serve:1")
    Node.objects.exclude(name=plan.canary).update(driver_unknown_since=NOON)

    assert [check.code for check in told(plan)] == ["cuda-unknown"]


@pytest.mark.parametrize("state", ["holding", "rolling-back", "aborting", "promoted"])
def test_where_no_rollback_can_be_asked_for_nothing_is_said(plan, state):
    assert told(in_state(plan, state)) == []


def test_a_plan_that_has_changed_nothing_has_nothing_to_go_back_from(plan, django_assert_max_num_queries):
    Target.objects.update(state="held")
    on_page = plan_on_page(plan, now=NOON)

    with django_assert_max_num_queries(0):
        assert rollback_checks(on_page) == []


def test_it_stands_in_the_dialog_and_in_rest_and_bars_nobody(plan, owner, client):
    client.force_login(owner)

    page = client.get(f"/plans/{plan.pk}").content.decode()
    answer = client.get(f"/api/v1/plans/{plan.pk}").json()

    assert "too new for driver" in page
    assert [check["code"] for check in answer["rollback_checks"]] == ["cuda-too-new"]
    assert next(button for button in answer["buttons"] if button["verb"] == "rollback")["is_allowed"]
