"""Approvals, overrides and changes of people need a sign-in of the last five minutes."""

from datetime import timedelta

import pytest
import time_machine

from people.models import AuditEntry
from rollouts.models import Approval, GateOverride
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import Page, page, visiting

pytestmark = pytest.mark.django_db
PASSWORD = "a long password"
LATER = timedelta(minutes=5, seconds=1)


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as clock:
        yield clock


def somebody(name: str, role: str):
    user = make.a_user(name, role=role)
    user.set_password(PASSWORD)
    user.save()
    return user


def test_an_approval_waits_for_the_password_and_keeps_the_reason(clock):
    stage = make.a_stage_to_approve(make.a_plan())
    amy = visiting(somebody("amy", "approver"))
    path = f"/stages/{stage.pk}/approval"
    clock.shift(LATER)
    shown = amy.get(path).context["look"]
    form = {"decision": "approve", "bundle_hash": shown.bundle_hash, "look": shown.token, "reason": "It looks <good>."}

    asked = amy.post(path, form, headers={"Referer": f"http://testserver{path}"})
    assert asked["Location"] == f"/confirm?next={path.replace('/', '%2F')}"
    assert not Approval.objects.exists()
    assert "Confirm that it is you" in page(amy, asked["Location"]).text
    wrong = amy.post("/confirm", {"password": "guess", "next": path})
    assert (wrong.status_code, "This password is wrong." in wrong.content.decode()) == (400, True)

    confirmed = amy.post("/confirm", {"password": PASSWORD, "next": path})
    assert confirmed["Location"] == path
    back = amy.get(path).content.decode()
    assert Page(back)
    assert 'data-name="reason" value="It looks &lt;good&gt;."' in back
    assert 'id="unsent"' not in amy.get(path).content.decode()
    amy.post(path, form)
    assert Approval.objects.get().by == "amy"


def test_a_rejection_never_waits(clock):
    stage = make.a_stage_to_approve(make.a_plan())
    amy = visiting(somebody("amy", "approver"))
    clock.shift(LATER)
    shown = amy.get(f"/stages/{stage.pk}/approval").context["look"]

    amy.post(
        f"/stages/{stage.pk}/approval",
        {"decision": "reject", "bundle_hash": shown.bundle_hash, "look": shown.token, "reason": "No."},
    )

    assert Approval.objects.get().is_rejection


def test_rest_refuses_a_session_without_a_recent_sign_in(clock):
    stage = make.a_stage_to_approve(make.a_plan())
    amy, root = calling(somebody("amy", "approver")), calling(somebody("root", "admin"))
    decision = {"decision": "approve", "bundle_hash": "0" * 64}
    override = {"gate": "approval", "reason": "CVE.", "confirm": stage.plan.title}
    clock.shift(LATER)

    answers = [
        amy.post(f"/api/v1/stages/{stage.pk}/approvals", decision, format="json"),
        root.post(f"/api/v1/stages/{stage.pk}/break-glass", override, format="json"),
        root.post("/api/v1/people", {"username": "new"}, format="json"),
        root.post(f"/api/v1/people/{amy.user.pk}/roles", {"role": "admin", "scope": "fleet"}, format="json"),
        root.delete(f"/api/v1/people/{amy.user.pk}/roles/{amy.user.bindings.get().pk}"),
        root.post(f"/api/v1/people/{amy.user.pk}/password-links"),
        amy.post("/api/v1/tokens", {"name": "x", "permissions": ["see"]}, format="json"),
    ]

    assert {answer.status_code for answer in answers} == {403}
    assert {answer.json()["type"] for answer in answers} == {"urn:quarterdeck:problem:confirmation-required"}
    assert not AuditEntry.objects.filter(actor__in=["amy", "root"]).exists()
    amy.post("/api/v1/session", {"username": "amy", "password": PASSWORD}, format="json")
    assert amy.post(f"/api/v1/stages/{stage.pk}/approvals", decision, format="json").status_code == 409


def test_pages_of_people_wait_and_what_takes_access_away_does_not(clock):
    amy, root = somebody("amy", "approver"), visiting(somebody("root", "admin"))
    token = make.a_token(amy) and amy.tokens.get()
    clock.shift(LATER)
    waiting = [
        root.post("/people/add", {"name": "new"}),
        root.post(f"/people/{amy.pk}/roles", {"role": "admin", "place": "fleet"}),
        root.post(f"/people/{amy.pk}/roles/{amy.bindings.get().pk}/removals"),
        root.post(f"/people/{amy.pk}/password-links"),
        root.post("/account/tokens", {"name": "x", "days": "30", "permissions": "see"}),
    ]
    assert {answer["Location"].partition("?")[0] for answer in waiting} == {"/confirm"}

    root.post(f"/people/{amy.pk}/tokens/{token.pk}/revocations")
    root.post(f"/people/{amy.pk}/switch-off")
    amy.refresh_from_db()
    token.refresh_from_db()
    assert (amy.is_active, bool(token.revoked_at)) == (False, True)


def test_guesses_of_the_password_are_limited(clock):
    root = visiting(somebody("root", "admin"))

    answers = [root.post("/confirm", {"password": "guess"}).status_code for _ in range(21)]

    assert answers[-1] == 429


def test_the_setting_switches_it_off(clock, settings):
    settings.STEP_UP_MINUTES = 0
    root = calling(somebody("root", "admin"))
    clock.shift(LATER)

    assert root.post("/api/v1/people", {"username": "new"}, format="json").status_code == 201


def test_no_token_approves_or_overrides_an_approval(clock):
    stage = make.a_stage_to_approve(make.a_plan())
    amy, root = make.a_user("amy", role="approver"), make.a_user("root", role="admin")
    override = {"gate": "approval", "reason": "CVE.", "confirm": stage.plan.title}
    decision = {"decision": "approve", "bundle_hash": "0" * 64}

    approved = calling(token=make.a_token(amy)).post(f"/api/v1/stages/{stage.pk}/approvals", decision, format="json")
    overridden = calling(token=make.a_token(root)).post(
        f"/api/v1/stages/{stage.pk}/break-glass", override, format="json"
    )
    issued = calling(root).post("/api/v1/tokens", {"name": "x", "permissions": ["approve"]}, format="json")

    assert (approved.status_code, overridden.status_code, issued.status_code) == (403, 403, 400)
    assert "A person must sign in for that." in approved.json()["detail"]
    assert (Approval.objects.count(), GateOverride.objects.count()) == (0, 0)
