"""The panel of a plan's page on which its image is pulled beforehand."""

import pytest

from fleet.models import Operand
from rollouts.models import ImagePull, PullJob
from tests.make import NOON, a_draft, a_fleet, a_pod, an_image_pull
from tests.pages import HOSTILE, Page, page

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

    assert "Not tried. Jobs pull the image" in shown.text
    assert "Pull the image" in shown.text


def test_asked_for_it_shows_how_far_it_is(ada, plan):
    asked = {"reason": "Before the window.", "nodes_each": "1", "key": "k"}

    ada.post(f"/plans/{plan.pk}/image-pulls", asked)
    shown = page(ada, f"/plans/{plan.pk}")

    assert ImagePull.objects.get().reason == "Before the window."
    assert f"{plan.to_version} on 1 node: no result yet." in shown.text
    assert "not started yet" in shown.text


def test_without_a_reason_nothing_is_asked_for(ada, plan):
    ada.post(f"/plans/{plan.pk}/image-pulls", {"reason": " ", "nodes_each": "1"})

    assert not ImagePull.objects.exists()


def test_what_was_written_for_a_pull_that_is_refused_comes_back_once(ada, plan):
    asked = {"reason": "Before the window.", "nodes_each": "77", "key": "k"}

    ada.post(f"/plans/{plan.pk}/image-pulls", asked)
    shown, again = (ada.get(f"/plans/{plan.pk}").content.decode() for _ in range(2))

    assert not ImagePull.objects.exists()
    assert "required autofocus>Before the window.</textarea>" in shown
    assert 'value="77" required' in shown
    assert "Before the window." not in again
    assert 'value="1" required' in again


def test_a_viewer_sees_it_and_is_told_why_not(bob, plan):
    an_image_pull(plan, "failed", "pulled", ended_at=NOON)

    shown = page(bob, f"/plans/{plan.pk}")

    assert "1 pulled, 1 failed." in shown.text
    assert "It is failed." in shown.text
    assert bob.post(f"/plans/{plan.pk}/image-pulls", {"reason": "x"}).status_code == 302
    assert ImagePull.objects.count() == 1


@pytest.mark.parametrize(
    ("outcomes", "given", "says"),
    [
        (("pulled", "", ""), {}, "on 3 nodes: 1 pulled, 2 to come."),
        (("pulled", "", ""), {"ended_at": NOON}, "on 3 nodes: 1 pulled, 2 not tried."),
        (("pulled", "unknown", ""), {"ends_reason": "Not today."}, "on 3 nodes: 1 pulled, 1 not known, 1 not tried."),
        (("", ""), {"ended_at": NOON}, "on 2 nodes: nothing was proven."),
    ],
)
def test_the_parts_of_a_pull_are_all_of_its_nodes(ada, plan, outcomes, given, says):
    an_image_pull(plan, *outcomes, **given)

    assert says in page(ada, f"/plans/{plan.pk}").text


def test_calling_off_is_a_button_while_it_runs(ada, plan):
    pull = an_image_pull(plan)

    ada.post(f"/image-pulls/{pull.pk}/cancellations", {"reason": "Not today."})

    assert ImagePull.objects.get().ends_reason == "ada cancelled the pull: Not today."


def test_what_was_written_to_cancel_one_that_is_over_is_said_beside_the_refusal(ada, plan):
    pull = an_image_pull(plan, "pulled", ended_at=NOON)

    refused = ada.post(f"/image-pulls/{pull.pk}/cancellations", {"reason": "Not today."}, follow=True)

    assert "Your text was not saved: Not today." in Page(refused.content.decode()).text


def test_words_of_a_registry_are_text(ada, plan):
    an_image_pull(plan, "failed")
    PullJob.objects.update(said=HOSTILE, says=HOSTILE)

    assert HOSTILE not in ada.get(f"/plans/{plan.pk}").content.decode()


def test_a_stranger_finds_no_panel(eve, plan):
    pull = an_image_pull(plan)

    assert eve.get(f"/parts/plans/{plan.pk}/image-pulls").status_code == 404
    assert eve.post(f"/image-pulls/{pull.pk}/cancellations", {"reason": "x"}).status_code == 404
