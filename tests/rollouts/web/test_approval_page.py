import pytest

from rollouts.bundles import bundle_for
from rollouts.models import Target
from tests import make
from tests.pages import Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def stage():
    return make.a_stage_to_approve()


@pytest.fixture
def amy():
    return visiting(make.a_user("amy", role="approver"))


def decide(client, stage, decision="approve", **asked):
    asked = {"decision": decision, "bundle_hash": bundle_for(stage).hash, "because": "Fine.", **asked}
    response = client.post(f"/stages/{stage.pk}/approval", asked, follow=True)
    return Page(response.content.decode()).text


def test_shows_what_will_happen_and_the_bundle(amy, stage):
    seen = page(amy, f"/stages/{stage.pk}/approval")

    assert "on 1 node of" in seen.text
    assert bundle_for(stage).hash in seen.text


def test_an_approver_approves_what_they_saw(amy, stage):
    decide(amy, stage)

    approval = stage.approvals.get()
    assert (approval.by, approval.is_rejection) == ("amy", False)


def test_a_rejection_wants_a_reason(amy, stage):
    said = decide(amy, stage, "reject", because="")

    assert "Say why you reject it" in said
    assert not stage.approvals.exists()


def test_a_bundle_that_changed_is_not_approved(amy, stage):
    seen = bundle_for(stage).hash
    Target.objects.filter(stage=stage).update(state="excluded")

    said = decide(amy, stage, bundle_hash=seen)

    assert "What you saw has changed since" in said
    assert not stage.approvals.exists()


def test_the_live_side_says_when_it_is_no_longer_what_was_seen(amy, stage):
    seen = bundle_for(stage).hash
    Target.objects.filter(stage=stage).update(state="excluded")

    assert "changed since" in page(amy, f"/parts/stages/{stage.pk}/approval?seen={seen}").text


def test_the_author_may_not_and_is_told_why():
    ada = make.a_user("ada", role="admin")
    stage = make.a_stage_to_approve(make.a_plan(author=ada))

    assert "You wrote or changed this plan" in page(visiting(ada), f"/stages/{stage.pk}/approval").text
    assert "Somebody other than ada has to decide" in decide(visiting(ada), stage)
    assert not stage.approvals.exists()


def test_a_viewer_is_told_which_role_is_missing(stage):
    said = decide(visiting(make.a_user(role="viewer")), stage)

    assert "you need the role" in said
    assert not stage.approvals.exists()


def test_a_stranger_gets_404(stage):
    eve = visiting(make.a_user())

    assert eve.get(f"/stages/{stage.pk}/approval").status_code == 404
    assert eve.post(f"/stages/{stage.pk}/approval", {"decision": "approve"}).status_code == 404
    assert eve.get(f"/parts/stages/{stage.pk}/approval").status_code == 404


def test_a_stage_whose_turn_it_is_not_has_nothing_to_decide(amy):
    plan = make.a_plan()

    seen = page(amy, f"/stages/{plan.stages.first().pk}/approval")

    assert "there is nothing to decide now" in seen.text
