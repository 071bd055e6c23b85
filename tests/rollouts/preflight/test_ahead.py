"""Z42: what an approver reads of the nodes to come is so now; what the start said carries its time."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark, DisruptionBudget, Node, Operand, Pod
from kube.resources import DISRUPTION_BUDGETS
from rollouts.commands.plan_start import start
from rollouts.models import Target
from rollouts.preflight.remaining_nodes import Ahead, ahead_of
from tests.make import NOON, a_bookmark, a_finding, a_pod
from tests.rollouts.make import NEW, lines_of
from tests.rollouts.rows import a_draft, opened

MINUTE = timedelta(minutes=1)


@pytest.fixture
def cluster(cluster):
    a_bookmark(cluster, DISRUPTION_BUDGETS.name)
    return cluster


@pytest.fixture
def stage(cluster, owner):
    """The second stage, of the nodes that the canary left, once the canary has changed."""
    for node in cluster.nodes.all():
        a_pod(node, f"model-{node.name}", labels={"app": node.name})
        DisruptionBudget.objects.create(
            cluster=cluster, namespace="team-a", name=node.name, uid=f"budget-{node.name}", changed_at=NOON,
            selector={"matchLabels": {"app": node.name}}, disruptions_allowed=0, current_healthy=1, desired_healthy=1,
        )  # fmt: skip
    plan = a_draft(cluster, owner)
    start(plan, actor=owner, reason="", override_reason="It must be.", expected_revision=1, now=NOON)
    Target.objects.filter(stage__plan=plan, stage__index=0).update(state="changed")
    plan.stages.filter(index=0).update(state="passed")
    return opened(plan, 1)


def ahead(stage) -> Ahead:
    Bookmark.objects.filter(cluster=stage.plan.cluster).update(last_seen_at=NOON + 11 * MINUTE)
    return ahead_of(stage, now=NOON + 11 * MINUTE)


def codes(stage) -> set[str]:
    return {check.code for check in ahead(stage).checks}


def test_a_budget_that_allows_one_again_is_not_said_to_allow_none(stage):
    assert "budget-allows-none" in codes(stage)

    DisruptionBudget.objects.update(disruptions_allowed=1)

    assert "budget-allows-none" not in codes(stage)


def test_only_the_nodes_still_to_go_are_looked_at(stage):
    to_come = set(Target.objects.filter(stage=stage).values_list("node_name", flat=True))

    (check,) = [check for check in ahead(stage).checks if check.code == "budget-allows-none"]

    assert {line.partition(":")[0].rpartition(" ")[2] for line in lines_of(check)} == to_come


def test_what_bars_a_start_and_nothing_else_is_not_said_of_a_plan_that_has_started(stage):
    """Its object asks for the new version: that is what the plan wrote."""
    stage.plan.cluster.driver_objects.filter(kind="NVIDIADriver").update(version=NEW, state="notReady")

    assert not codes(stage) & {"drifted", "same-version", "not-ready", "uncovered", "busy"}


def test_a_node_that_became_sick_since_the_start_is_named(stage):
    node = Node.objects.get(uid=Target.objects.filter(stage=stage).first().node_uid)
    a_finding(stage.plan.cluster, node=node, severity="critical", title="It lacks a GPU")

    (check,) = [check for check in ahead(stage).checks if check.code == "sick-taken"]

    assert lines_of(check) == (f"{node.name}: It lacks a GPU.",)


def test_an_image_that_nodes_run_is_not_called_untried(stage):
    image = f"nvcr.io/nvidia/driver:{NEW}-ubuntu22.04"
    Operand.objects.filter(operand="driver").update(image=image)
    Node.objects.update(driver_daemon_set=Operand.objects.get(operand="driver").uid)
    assert "image-untried" in codes(stage)

    driver = Pod.objects.filter(operand="driver").first()
    Pod.objects.filter(pk=driver.pk).update(image=image, is_ready=True)

    assert "image-untried" not in codes(stage)


def test_of_a_cluster_that_is_not_seen_it_says_when_it_was(stage):
    told = ahead_of(stage, now=NOON + 11 * MINUTE)

    assert told.seen_at == NOON
    assert told.stale_reason


def test_a_stage_of_an_object_that_is_gone_has_nothing_to_look_at(stage):
    stage.plan.cluster.driver_objects.filter(kind="NVIDIADriver").delete()

    assert ahead(stage).checks == []
