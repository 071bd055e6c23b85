"""What a rollback would break is said before it is asked for, and bars none (hazard Z32)."""

import html

import pytest
from django.utils import timezone

from fleet.models import Bookmark, Node, Pod
from kube.resources import PODS
from rollouts.commands.rollback_preview import rollback_preview
from rollouts.models import Target
from rollouts.preflight.rollback import rollback_checks
from rollouts.queries.plan_view import plan_on_page
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
    return rollback_checks(plan_on_page(plan, now=NOON), now=NOON)


def test_pods_on_changed_nodes_that_the_old_driver_does_not_run_are_named(plan):
    (check,) = told(plan)

    assert check.title == f"team-a/on-{plan.canary} needs a newer driver than {plan.from_version}"


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
    Node.objects.update(driver_version=plan.from_version)
    on_page = plan_on_page(plan, now=NOON)

    with django_assert_max_num_queries(1):
        assert rollback_checks(on_page, now=NOON) == []


@pytest.mark.parametrize("state", ["held", "excluded"])
def test_a_node_that_changed_and_was_not_let_go_comes_back_too(plan, state):
    """It took the new driver although it was held, or failed and was taken out of its stage."""
    Target.objects.filter(stage__plan=plan, node_name=plan.canary).update(state=state)

    (check,) = told(plan)

    assert check.sentence.startswith(f"team-a/on-{plan.canary} needs a newer driver")


def test_a_node_that_is_being_changed_names_no_driver_and_comes_back_too(plan):
    Target.objects.filter(stage__plan=plan, node_name=plan.canary).update(state="held")
    Node.objects.filter(name=plan.canary).update(driver_unknown_since=NOON, upgrade_state="drain-required")

    assert [check.code for check in told(plan)] == ["cuda-too-new"]


def test_a_node_that_somebody_else_holds_is_not_the_plans_to_bring_back(plan):
    Target.objects.filter(stage__plan=plan).update(state="held")
    plan.holds.filter(node_name=plan.canary).update(is_foreign=True)

    assert told(plan) == []


def test_pods_that_nobody_sees_are_not_pods_that_are_not_there(plan):
    Bookmark.objects.filter(cluster=plan.cluster, kind=PODS.name).update(state="forbidden")

    codes = [check.code for check in told(plan)]

    assert codes == ["cuda-too-new", "pods-unseen"]


def test_it_stands_in_the_dialog_and_in_rest_and_bars_nobody(plan, owner, client):
    client.force_login(owner)
    Bookmark.objects.filter(cluster=plan.cluster).update(last_seen_at=timezone.now())

    page = client.get(f"/plans/{plan.pk}").content.decode()
    answer = client.get(f"/api/v1/plans/{plan.pk}").json()

    assert "is too new for the driver" in page
    assert [check["code"] for check in answer["rollback_checks"]] == ["cuda-too-new"]
    assert next(button for button in answer["buttons"] if button["verb"] == "rollback")["is_allowed"]


def test_the_preview_names_nodes_waves_pods_and_minutes(plan, owner, client):
    client.force_login(owner)

    preview = rollback_preview(plan_on_page(plan, now=NOON), now=NOON)
    answer = client.get(f"/api/v1/plans/{plan.pk}").json()["rollback_preview"]

    assert preview
    assert (preview.nodes, preview.waves, preview.gpu_pods) == ((plan.canary,), 1, 1)
    assert preview.takes_s > 0
    assert f"Rolls 1 node back to {plan.from_version}: {plan.canary}." in preview.sentence
    assert answer["nodes"] == [plan.canary]
    assert answer["gpu_pods"] is None  # now, long after the watch was last heard
    assert preview.lines[0] in html.unescape(client.get(f"/plans/{plan.pk}").content.decode())


def test_the_preview_of_a_plan_that_changed_nothing_says_so(plan):
    Target.objects.update(state="held")
    Node.objects.update(driver_version=plan.from_version)

    preview = rollback_preview(plan_on_page(plan, now=NOON), now=NOON)

    assert preview
    assert (preview.nodes, preview.waves) == ((), 0)
    assert preview.sentence.startswith(f"No node differs from {plan.from_version}")
