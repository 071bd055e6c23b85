"""Passing a gate over from the page of its plan and over REST, and saying that one has looked."""

from datetime import timedelta

import pytest

from rollouts.models import GateOverride
from tests import make
from tests.callers import calling
from tests.pages import HOSTILE, Page, page, visiting, wrong_beside
from tests.rollouts.rows import answered

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def stage():
    stage = make.a_stage_to_approve()
    answered(stage, "approval", "wait", title="0 of 1 approval given")
    return type(stage).objects.select_related("plan__cluster").get(pk=stage.pk)


@pytest.fixture
def root():
    return make.a_user("root", role="admin")


def break_it(client, stage, gate: str = "approval", **given) -> str:
    asked = {"reason": "CVE at 3 a.m.", "confirm": stage.plan.title, "hours": "4", **given}
    path = f"/stages/{stage.pk}/gates/{gate}/break-glass"
    return Page(client.post(path, asked, follow=True).content.decode()).text


def test_the_page_shows_it_in_red_until_and_after_somebody_else_has_looked(stage, root):
    said = break_it(visiting(root), stage)
    amy = visiting(make.a_user("amy", role="approver"))
    override = GateOverride.objects.get()

    assert "Overridden. The gate counts again from 16:00 UTC on" in said
    assert "root overrode it" in said
    assert "Not acknowledged by a second person. Acknowledge" not in said
    assert "Not acknowledged by a second person. Acknowledge" in page(amy, f"/plans/{stage.plan_id}").text
    after = amy.post(f"/break-glass/{override.pk}/acknowledgements", follow=True).content.decode()
    assert "amy acknowledged it." in Page(after).text
    assert "CVE at 3 a.m." in Page(after).text


def test_one_that_counts_again_tomorrow_says_which_day(stage, root):
    said = break_it(visiting(root), stage, hours="24")

    tomorrow = GateOverride.objects.get().until
    assert f"Overridden. The gate counts again from {tomorrow:%A} 12:00 UTC on" in said
    assert f", until {tomorrow:%A} 12:00 UTC: CVE at 3 a.m." in said


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"confirm": ""}, "To confirm, type the plan's title: “"),
        ({"reason": " "}, "Give a reason"),
        ({"hours": "99"}, "An override lasts between"),
        ({"hours": HOSTILE}, "An override lasts between"),
        ({"gate": "luck"}, "has no gate “luck”"),
    ],
)
def test_what_is_missing_is_said(stage, root, given, sentence):
    assert sentence in break_it(visiting(root), stage, **given)
    assert not GateOverride.objects.exists()


def test_what_was_written_comes_back_once_where_the_title_is_mistyped(stage, root):
    client = visiting(root)
    asked = {"reason": "CVE at 3 a.m.", "confirm": "a title", "hours": "1"}
    path = f"/stages/{stage.pk}/gates/approval/break-glass"

    refused = client.post(path, asked, follow=True).content.decode()
    later = client.get(f"/plans/{stage.plan_id}").content.decode()

    assert "CVE at 3 a.m.</textarea>" in refused
    assert '<option value="1" selected>' in refused
    assert '<option value="4">' in refused
    assert "CVE at 3 a.m." not in later
    assert '<option value="4" selected>' in later


def test_what_is_wrong_stands_beside_its_field(stage, root):
    path = f"/stages/{stage.pk}/gates/approval/break-glass"
    html = visiting(root).post(path, {"reason": " ", "confirm": "a title", "hours": "99"}, follow=True).content.decode()

    assert wrong_beside(html, "confirm-override").startswith("To confirm, type the plan's title: “")
    assert wrong_beside(html, "hours-override").startswith("An override lasts between")
    assert wrong_beside(html, "reason-override").startswith("Give a reason")


def test_who_may_not_has_no_button_and_is_refused(stage):
    amy = visiting(make.a_user("amy", role="approver"))

    assert 'data-dialog="dialog-override"' not in amy.get(f"/plans/{stage.plan_id}").content.decode()
    assert "you need the role" in break_it(amy, stage)


def test_rest_says_the_same(stage, root):
    path = f"/api/v1/stages/{stage.pk}/break-glass"
    asked = {"gate": "approval", "reason": "CVE.", "confirm": stage.plan.title, "valid_for_s": 600}

    made = calling(root).post(path, asked, format="json")
    again = calling(root).post(path, asked, format="json")
    wrong = calling(root).post(path, asked | {"confirm": "x"}, format="json")

    assert made.status_code == 201
    assert GateOverride.objects.get().until - GateOverride.objects.get().at == timedelta(minutes=10)
    assert (again.status_code, "already" in again.json()["detail"]) == (409, True)
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (400, "confirm")
    assert [each["by"] for each in calling(root).get(path).json()["results"]] == ["root"]


def test_who_broke_it_does_not_acknowledge_it(stage, root):
    break_it(visiting(root), stage)
    path = f"/api/v1/break-glass/{GateOverride.objects.get().pk}/acknowledgements"

    assert calling(root).post(path).status_code == 403
    assert calling(make.a_user("vic", role="viewer")).post(path).status_code == 403
    assert calling(make.a_user("eve")).post(path).status_code == 404
    assert calling(make.a_user("amy", role="approver")).post(path).status_code == 204


def test_an_approver_of_the_next_stage_is_told(stage, root):
    break_it(visiting(root), stage)
    later = stage.plan.stages.exclude(kind="rollback").exclude(pk=stage.pk).first()
    if later is None:
        later = stage.plan.stages.create(
            index=50, name="Later", kind="pool", state="opening", state_since=make.NOON, gate_options={"approval": {}}
        )

    seen = page(visiting(make.a_user("amy", role="approver")), f"/stages/{later.pk}/approval").text

    assert "root overrode the gate Approval of stage 1" in seen
    assert "CVE at 3 a.m." in seen
