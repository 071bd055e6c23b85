"""The panel of a draft's page on which it is rehearsed, and the lines that an approver reads."""

import pytest

from rollouts.models import Rehearsal
from rollouts.rehearsal.rehearsal_round import run_rehearsal
from tests import make
from tests.pages import Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def rehearse(visitor, plan, fault: str = "") -> Page:
    reply = visitor.post(f"/plans/{plan.pk}/rehearsals", {"fault": fault, "seed": "1"}, follow=True)
    return Page(reply.content.decode())


def test_an_operator_rehearses_and_reads_the_outcome_and_its_age():
    plan, ada = make.a_draft(), visiting(make.a_user("ada", role="operator"))
    before = page(ada, f"/plans/{plan.pk}").text

    asked = rehearse(ada, plan, "bad-driver").text
    run_rehearsal(Rehearsal.objects.get().pk, owner="worker-1", clock=lambda: make.NOON)
    after = page(ada, f"/plans/{plan.pk}").text
    type(plan).objects.update(revision=2)
    edited = page(ada, f"/plans/{plan.pk}").text

    assert "No rehearsals. A rehearsal plays this draft in virtual time" in before
    assert "In progress. The outcome appears here." in asked
    assert "stops in Canary, by driver_version" in after
    assert "Of revision 1." not in after
    assert "Of revision 1. The draft is now revision 2." in edited


def test_a_viewer_is_refused():
    plan = make.a_draft()

    said = rehearse(visiting(make.a_user("bob", role="viewer")), plan)

    assert "you need the role" in said.text
    assert not Rehearsal.objects.exists()


def test_an_approver_reads_the_rehearsals_before_the_start_or_that_none_was_made():
    stage = make.a_stage_to_approve()
    plan, amy = stage.plan, visiting(make.a_user("amy", role="approver"))
    none = page(amy, f"/stages/{stage.pk}/approval").text
    row = {"fault": "ecc", "seed": 1, "by": "ada", "at": make.NOON.isoformat(), "sentence": "ECC: stops in Canary."}
    type(plan).objects.filter(pk=plan.pk).update(sealed=plan.sealed | {"rehearsals": [row]})

    text = page(amy, f"/stages/{stage.pk}/approval").text

    assert "No rehearsal of this plan was made before its start." in none
    assert "ECC: stops in Canary." in text
