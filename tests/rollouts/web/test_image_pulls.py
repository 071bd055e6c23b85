"""The panel of a plan's page on which its image is pulled beforehand."""

import pytest

from fleet.models import Operand
from operations.models import Operation, OperationNode
from rollouts.models import PlanPull
from tests.make import a_draft, a_fleet, a_pod, an_image_pull
from tests.pages import HOSTILE, page

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def plan():
    fleet = a_fleet()
    Operand.objects.update(image="nvcr.io/nvidia/driver:570.172.08-ubuntu22.04")
    for node in fleet.nodes.all():
        a_pod(node, f"driver-{node.name}", namespace="gpu-operator", gpus=0, operand="driver",
              owner_uid=Operand.objects.get().uid)  # fmt: skip
    return a_draft(fleet)


def test_a_draft_says_that_nobody_tried_and_offers_it(ada, plan):
    shown = page(ada, f"/plans/{plan.pk}")

    assert "Not tried. An operation pulls the image" in shown.text
    assert "Pull the image" in shown.text


def test_asked_for_it_shows_how_far_it_is(ada, plan):
    asked = {"reason": "Before the window.", "nodes_each": "1", "key": "k"}

    ada.post(f"/plans/{plan.pk}/image-pulls", asked)
    shown = page(ada, f"/plans/{plan.pk}")

    assert Operation.objects.get().reason == "Before the window."
    assert f"{plan.to_version} on 1 node: no result yet." in shown.text
    assert "not started yet" in shown.text


def test_without_a_reason_nothing_is_asked_for(ada, plan):
    ada.post(f"/plans/{plan.pk}/image-pulls", {"reason": " ", "nodes_each": "1"})

    assert not PlanPull.objects.exists()


def test_what_was_written_for_a_pull_that_is_refused_comes_back_once(ada, plan):
    asked = {"reason": "Before the window.", "nodes_each": "77", "key": "k"}

    ada.post(f"/plans/{plan.pk}/image-pulls", asked)
    shown, again = (ada.get(f"/plans/{plan.pk}").content.decode() for _ in range(2))

    assert not PlanPull.objects.exists()
    assert "required autofocus>Before the window.</textarea>" in shown
    assert 'value="77" required' in shown
    assert "Before the window." not in again
    assert 'value="1" required' in again


def test_a_viewer_sees_it_and_is_told_why_not(bob, plan):
    an_image_pull(plan, "failed", "pulled", state="finished")

    shown = page(bob, f"/plans/{plan.pk}")

    assert "1 pulled, 1 failed." in shown.text
    assert "It is failed." in shown.text
    assert bob.post(f"/plans/{plan.pk}/image-pulls", {"reason": "x"}).status_code == 302
    assert PlanPull.objects.count() == 1


@pytest.mark.parametrize(
    ("outcomes", "given", "says"),
    [
        (("pulled", "", ""), {}, "on 3 nodes: 1 pulled, 2 to come."),
        (("pulled", "", ""), {"state": "cancelled"}, "on 3 nodes: 1 pulled, 2 not tried."),
        (("pulled", "unknown", ""), {"state": "paused"}, "on 3 nodes: 1 pulled, 1 not known, 1 to come."),
        (("", ""), {"state": "cancelled"}, "on 2 nodes: nothing was proven."),
    ],
)
def test_the_parts_of_a_pull_are_all_of_its_nodes(ada, plan, outcomes, given, says):
    an_image_pull(plan, *outcomes, **given)

    assert says in page(ada, f"/plans/{plan.pk}").text


def test_it_links_to_its_operation_where_it_is_cancelled(ada, plan):
    pull = an_image_pull(plan)

    assert f'href="/operations/{pull.operation_id}"' in ada.get(f"/plans/{plan.pk}").content.decode()


def test_words_of_a_registry_are_text(ada, plan):
    an_image_pull(plan, "failed")
    OperationNode.objects.update(reason=HOSTILE)

    assert HOSTILE not in ada.get(f"/plans/{plan.pk}").content.decode()


def test_a_stranger_finds_no_panel(eve, plan):
    an_image_pull(plan)

    assert eve.get(f"/parts/plans/{plan.pk}/image-pulls").status_code == 404
