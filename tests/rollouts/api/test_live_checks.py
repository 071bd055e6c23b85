"""A draft's cluster asked over REST: by whom it may be, and what is shown of it."""

import pytest

from rollouts.checks import Check
from rollouts.models import LiveCheck
from rollouts.preflight.live_checks.answers import barring_answer
from tests.callers import calling
from tests.make import NOON, a_draft, a_fleet, a_plan, a_user

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
ABSENT = barring_answer(
    Check("live-namespace", title="east has no namespace quarterdeck", steps=("Apply the manifest.",))
)


def ask(client, plan):
    return client.post(f"/api/v1/plans/{plan.pk}/live-checks", content_type="application/json")


def answered(plan, *answers, **given) -> LiveCheck:
    row = {"asked_by": "ada", "asked_at": NOON, "revision": 1, "lease_until": NOON, "answered_at": NOON}
    written = [answer.written for answer in answers]
    return LiveCheck.objects.create(plan=plan, answers=written, answered_revision=1, **row | given)


@pytest.fixture
def ada():
    return calling(a_user("ada", role="operator"))


def test_who_may_draft_has_the_cluster_asked(ada):
    plan = a_draft()

    reply = ask(ada, plan)

    shown = reply.json()["live_check"]
    assert reply.status_code == 201
    assert (shown["is_in_force"], shown["is_start"], shown["answers"]) == (True, False, [])
    assert shown["sentence"].startswith("ada requested a check at ")


def test_who_asks_beside_another_gets_that_one(ada):
    plan = a_draft()
    ask(calling(a_user("bert", role="operator")), plan)

    assert ask(ada, plan).json()["live_check"]["asked_by"] == "bert"


def test_a_viewer_may_not_and_a_stranger_finds_none():
    plan = a_draft()

    assert ask(calling(a_user("bob", role="viewer")), plan).status_code == 403
    assert ask(calling(a_user("eve")), plan).status_code == 404
    assert not LiveCheck.objects.exists()


def test_a_plan_that_has_started_is_asked_by_its_rounds(ada):
    reply = ask(ada, a_plan())

    assert reply.status_code == 409
    assert "so its rounds check the cluster themselves" in reply.json()["detail"]


def test_a_cluster_that_may_not_be_changed_is_not_tried(ada):
    reply = ask(ada, a_draft(a_fleet(mode="observe-only")))

    assert reply.status_code == 409


def test_answers_are_shown_with_their_age_and_stand_in_the_preview():
    plan = a_draft()
    answered(plan, ABSENT, outcome="It has none.")
    bob = calling(a_user("bob", role="viewer"))

    shown = bob.get(f"/api/v1/plans/{plan.pk}/live-checks").json()["live_check"]
    preview = bob.get(f"/api/v1/plans/{plan.pk}/preview").json()

    (answer,) = shown["answers"]
    assert (answer["result"], answer["check"]["code"]) == ("barred", "live-namespace")
    assert shown["answered_at"]
    assert "1 against the start" in shown["sentence"]
    assert preview["live"] == shown


def test_answers_about_an_earlier_revision_say_so(ada):
    plan = a_draft()
    answered(plan, ABSENT)
    type(plan).objects.update(revision=2)

    shown = ada.get(f"/api/v1/plans/{plan.pk}/live-checks").json()["live_check"]

    assert "The draft was edited since." in shown["sentence"]


def test_where_nobody_has_asked_there_is_nothing(ada):
    assert ada.get(f"/api/v1/plans/{a_draft().pk}/live-checks").json() == {"live_check": None}
