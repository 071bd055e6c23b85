"""The panel of a draft's page on which its cluster is asked."""

import pytest

from rollouts.checks import Check
from rollouts.commands.preview import preview
from rollouts.models import LiveCheck
from rollouts.preflight.live_checks.answers import barring_answer, passed, unanswered
from rollouts.preflight.live_checks.facts import NoAnswer
from tests import make
from tests.pages import Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
ABSENT = barring_answer(
    Check("live-namespace", title="north has no namespace quarterdeck", steps=("Apply the manifest.",))
)
LOST = unanswered("whether it is taken", NoAnswer("It did not answer in time."))
CANNOT = unanswered("whether it is taken", NoAnswer("No dry run.", may_be_overridden=True))


def answered(plan, *answers) -> LiveCheck:
    row = {"asked_by": "ada", "asked_at": make.NOON, "revision": 1, "lease_until": make.NOON}
    written = [answer.written for answer in answers]
    return LiveCheck.objects.create(plan=plan, answers=written, answered_at=make.NOON, answered_revision=1, **row)


def test_who_may_draft_presses_the_button():
    plan = make.a_draft()
    ada = visiting(make.a_user("ada", role="operator"))
    before = page(ada, f"/plans/{plan.pk}").text

    response = ada.post(f"/plans/{plan.pk}/live-checks", follow=True)

    after = Page(response.content.decode()).text
    assert "Check live" in before
    assert "ada requested a check at" in after
    assert LiveCheck.objects.in_force().get().plan == plan


def test_a_viewer_sees_why_not_and_a_stranger_nothing():
    plan = make.a_draft()
    bob = visiting(make.a_user("bob", role="viewer"))

    said = bob.post(f"/plans/{plan.pk}/live-checks", follow=True).content.decode()

    assert "you need the role" in Page(said).text
    assert visiting(make.a_user("eve")).post(f"/plans/{plan.pk}/live-checks").status_code == 404
    assert not LiveCheck.objects.exists()


def test_each_answer_has_its_sentence_its_fix_and_its_shape():
    plan = make.a_draft()
    answered(plan, ABSENT, LOST, passed(Check("live-hold", title="The label would be taken", is_good=True)))

    html = visiting(make.a_user("bob", role="viewer")).get(f"/parts/plans/{plan.pk}/live-checks").content.decode()

    assert "north has no namespace quarterdeck" in html
    assert "Apply the manifest." in html
    assert 'aria-label="against it"' in html
    assert 'aria-label="unknown, which counts as unhealthy"' in html
    assert 'aria-label="in order"' in html


def test_what_nobody_could_ask_may_be_overridden_in_the_dialog_of_the_start():
    plan = make.a_draft()
    answered(plan, CANNOT)

    ada = visiting(make.a_user("ada", role="operator"))

    assert (
        'data-overrides="Why it starts despite the blocker'
        in ada.get(f"/parts/plans/{plan.pk}/preview").content.decode()
    )


def test_an_approver_reads_what_the_cluster_said_before_the_start():
    stage = make.a_stage_to_approve()
    said = {
        "at": make.NOON.isoformat(),
        "answers": [{"result": "passed", "code": "x", "title": "It was taken", "summary": ""}],
    }
    plan = stage.plan
    type(plan).objects.filter(pk=plan.pk).update(sealed=plan.sealed | {"live": said})

    text = page(visiting(make.a_user("amy", role="approver")), f"/stages/{stage.pk}/approval").text

    assert "Live check before the start" in text
    assert "It was taken" in text


@pytest.mark.parametrize("revision", [1, 2])
def test_the_verdict_of_the_preview_is_not_green_beside_a_live_check_that_bars(revision):
    plan = make.a_draft()
    answered(plan, ABSENT, LOST)
    LiveCheck.objects.update(answered_revision=revision)  # of this draft, or of one before an edit
    shown = preview(plan, now=make.NOON)

    said = "The live check of 2026-11-21 12:00:00 UTC spoke against the start (2 answers). Each start repeats it."
    assert (shown.live_objection == said) is (revision == plan.revision)
    if revision == plan.revision and not shown.blockers:
        assert (shown.verdict, shown.verdict_sentence) == ("grave", said)
