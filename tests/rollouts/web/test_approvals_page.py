import pytest

from people.models import User
from rollouts.approvals.bundles import bundle_for
from rollouts.commands.plan_approvals import approve, reject
from rollouts.models import Approval, Stage
from tests import make
from tests.callers import calling
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def stage():
    return Stage.objects.select_related("plan__cluster").get(pk=make.a_stage_to_approve().pk)


@pytest.fixture
def amy() -> User:
    return make.a_user("amy", role="approver")


def test_without_anything_the_page_says_what_will_stand_there(amy):
    seen = page(visiting(amy), "/approvals").text

    assert "No approvals wait for you." in seen
    assert "Nothing yet." in seen
    assert page(visiting(amy), "/parts/approvals/count").text.strip() == ""


def test_what_waits_for_somebody_is_counted_in_the_bar(amy, stage):
    assert f"{stage.plan.title}: {stage.name}" in page(visiting(amy), "/approvals").text
    assert page(visiting(amy), "/parts/approvals/count").text.split() == ["1", "waiting", "for", "you"]


def test_the_count_in_the_bar_follows_plans_as_other_parts_do(amy):
    """By itself it asked every half a minute, also of a tab that nobody looked at."""
    written = visiting(amy).get("/parts/approvals/count").content.decode()

    assert 'data-part="/parts/approvals/count" data-on="plans"' in written
    assert "hx-trigger" not in written


def test_a_stage_that_has_every_approval_waits_for_nobody(amy, stage):
    """It may stand for hours still: a freeze, or a gate that waits for room."""
    bob = make.a_user("bob", role="approver")
    approve(stage, actor=amy, bundle_hash=bundle_for(stage).hash, reason="Fine.", now=make.NOON)

    seen = page(visiting(bob), "/approvals").text

    assert "No approvals wait for you." in seen
    assert "1 of 1 approval given" in seen
    assert "All required approvals are given." in seen
    assert page(visiting(bob), "/parts/approvals/count").text.strip() == ""
    assert calling(bob).get("/api/v1/approvals").json()["results"][0]["missing"] == 0


def test_a_no_is_not_counted_as_an_approval_and_waits_for_nobody_else(amy, stage):
    bob = make.a_user("bob", role="approver")
    reject(stage, actor=amy, bundle_hash=bundle_for(stage).hash, reason="Month end.", now=make.NOON)

    seen = page(visiting(bob), "/approvals").text

    assert "No approvals wait for you." in seen
    assert "0 of 1 approval given" in seen
    assert "amy rejected it." in seen


def test_who_may_not_give_it_is_told_why_and_counts_nothing(stage):
    author = User.objects.get(username=stage.plan.author)
    make.give(author, "admin")

    seen = page(visiting(author), "/approvals").text

    assert "Waits for others" in seen
    assert "You wrote, changed or started this plan." in seen
    assert page(visiting(author), "/parts/approvals/count").text.strip() == ""


def test_what_was_given_and_became_void_says_why(amy, stage):
    given = approve(stage, actor=amy, bundle_hash=bundle_for(stage).hash, reason="Fine.", now=make.NOON)
    before = page(visiting(amy), "/approvals").text
    Approval.objects.filter(pk=given.pk).update(void_at=make.NOON, void_reason="A target changed.")

    after = page(visiting(amy), "/approvals").text

    assert "No approvals wait for you." in before
    assert "approved : Fine." in before or "approved: Fine." in before
    assert "Yours is void: A target changed." in after
    assert ": A target changed." in after


def test_rest_lists_what_the_caller_decided_and_nobody_elses(amy, stage):
    approve(stage, actor=amy, bundle_hash=bundle_for(stage).hash, reason="Fine.", now=make.NOON)

    (mine,) = calling(amy).get("/api/v1/approvals/given").json()["results"]

    assert (mine["stage"], mine["plan"], mine["is_standing"]) == (stage.pk, stage.plan_id, True)
    assert calling(make.a_user("bob", role="approver")).get("/api/v1/approvals/given").json()["results"] == []


def test_who_sees_no_cluster_sees_no_approval(stage):
    eve = make.a_user("eve", role="approver", on=make.a_cluster("far"))

    assert "No approvals wait for you." in page(visiting(eve), "/approvals").text
