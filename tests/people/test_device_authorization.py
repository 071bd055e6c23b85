"""The device flow of RFC 8628: codes, the person's answer, and the token."""

from datetime import timedelta

import pytest
import time_machine
from rest_framework.test import APIClient

from edges.transition_errors import LostRace
from people.models import ApiToken, AuditEntry, DeviceAuthorization
from people.roster import device_authorizations
from people.roster.device_authorizations import begin, confirm, deny, exchange, forget, unanswered_request
from people.sign_in import throttle
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.fixture
def clock():
    with time_machine.travel(NOON, tick=False) as clock:
        yield clock


@pytest.fixture
def codes(clock) -> dict:
    body = {"client": "quarterdeck on\u202e laptop"}
    return APIClient().post("/api/v1/device-authorizations", body, format="json").json()


def poll(codes: dict) -> tuple[int, str]:
    answer = APIClient().post("/api/v1/device-tokens", {"device_code": codes["device_code"]}, format="json")
    return answer.status_code, answer.json().get("error", "")


def form_for(codes: dict, **given) -> dict:
    return {"user_code": codes["user_code"], "name": "laptop", "days": "30", "permissions": ["see"]} | given


def test_a_person_confirms_and_the_command_line_gets_a_token_once(codes):
    ada = make.a_user("ada", role="operator")
    browser = visiting(ada)
    assert codes["verification_uri_complete"] == f"http://testserver/device?user_code={codes['user_code']}"
    assert (codes["expires_in"], codes["interval"]) == (600, 5)
    assert poll(codes) == (400, "authorization_pending")

    shown = page(browser, f"/device?user_code={codes['user_code'].lower()}").text
    assert all(part in shown for part in (codes["user_code"], "12:00:00", "127.0.0.1", "quarterdeck on laptop"))
    assert not DeviceAuthorization.objects.exclude(is_confirmed=None).exists()
    browser.post("/device/confirmations", form_for(codes, permissions=["see", "stop"]))
    answer = APIClient().post("/api/v1/device-tokens", {"device_code": codes["device_code"]}, format="json")

    secret = answer.json()["access_token"]
    me = calling(token=secret).get("/api/v1/me").json()
    assert (me["username"], me["token"]["name"], answer.json()["expires_in"]) == ("ada", "laptop", 30 * 86_400)
    assert answer["Cache-Control"] == "no-store"
    token = ApiToken.objects.get()
    assert (token.user, token.permissions) == (ada, ["see", "stop"])
    request = DeviceAuthorization.objects.get()
    issued, confirmed = (AuditEntry.objects.get(verb=verb) for verb in ("token.issue", "device.confirm"))
    assert (issued.actor, issued.evidence["device"], issued.evidence["address"]) == ("ada", request.pk, "127.0.0.1")
    assert (confirmed.subject, confirmed.evidence["permissions"]) == (f"device:{request.pk}", ["see", "stop"])


def test_codes_are_stored_as_keyed_digests_only(codes):
    row = str(DeviceAuthorization.objects.values().get())

    assert codes["device_code"] not in row
    assert codes["user_code"] not in row


def test_a_second_use_of_the_code_revokes_the_token(codes):
    visiting(make.a_user("ada", role="operator")).post("/device/confirmations", form_for(codes))
    assert poll(codes) == (200, "")

    assert poll(codes) == (400, "invalid_grant")

    assert ApiToken.objects.get().revoked_at == NOON
    assert AuditEntry.objects.get(verb="token.revoke").reason == "Its code was used twice."


def test_a_denied_request_gets_no_token(codes):
    browser = visiting(make.a_user("ada", role="operator"))

    browser.post("/device/denials", {"user_code": codes["user_code"]})

    assert poll(codes) == (400, "access_denied")
    assert AuditEntry.objects.get(verb="device.deny").actor == "ada"
    assert browser.post("/device/confirmations", form_for(codes)).status_code == 404


def test_an_expired_code_is_neither_confirmed_nor_exchanged(codes, clock):
    clock.shift(10 * MINUTE)
    later = visiting(make.a_user("ada", role="operator"))

    assert poll(codes) == (400, "expired_token")
    assert later.post("/device/confirmations", form_for(codes)).status_code == 404


def test_a_poll_that_comes_too_early_is_slowed_down(codes, clock):
    poll(codes)
    assert poll(codes) == (400, "slow_down")
    clock.shift(timedelta(seconds=5))
    assert poll(codes) == (400, "slow_down")
    assert DeviceAuthorization.objects.get().interval_s == 15
    clock.shift(timedelta(seconds=15))

    assert poll(codes) == (400, "authorization_pending")


def test_an_unknown_device_code_is_refused_and_counted(clock, monkeypatch):
    monkeypatch.setattr(throttle, "WRONG_TOKENS", 1)

    assert poll({"device_code": "guess"}) == (400, "invalid_grant")
    assert poll({"device_code": "guess"})[0] == 429


@pytest.mark.parametrize(
    ("limit", "address", "status"),
    [
        ("DEVICE_REQUESTS", "127.0.0.1", 429),
        ("DEVICE_REQUESTS", "192.0.2.7", 200),
        ("DEVICE_REQUESTS_OF_ALL", "192.0.2.7", 429),
    ],
)
def test_requests_of_one_address_and_of_all_have_limits(limit, address, status, codes, monkeypatch):
    monkeypatch.setattr(throttle, limit, 1)
    asked = {"format": "json", "REMOTE_ADDR": address}

    assert APIClient().post("/api/v1/device-authorizations", {}, **asked).status_code == status


def test_codes_cannot_be_guessed_in_the_browser(codes, monkeypatch):
    monkeypatch.setattr(throttle, "USER_CODES", 1)
    browser = visiting(make.a_user("ada", role="operator"))
    assert browser.get("/device?user_code=BCDF-BCDF").status_code == 404

    assert browser.get(f"/device?user_code={codes['user_code']}").status_code == 429
    assert browser.post("/device/confirmations", form_for(codes)).status_code == 429
    assert poll(codes) == (400, "authorization_pending")


def test_no_token_gets_more_than_its_person_has(codes):
    browser = visiting(make.a_user("bob", role="viewer"))

    refused = browser.post("/device/confirmations", form_for(codes, permissions=["run"]))

    assert refused.status_code == 400
    assert "approve" not in refused.content.decode().split('id="device-title"')[1].split("</form>")[0].replace(
        "approvals need a person", ""
    )
    assert DeviceAuthorization.objects.get().is_confirmed is None


def test_somebody_without_a_role_is_offered_no_token(codes):
    assert "You have no role" in page(visiting(make.a_user("eve")), f"/device?user_code={codes['user_code']}").text


def test_only_a_session_with_a_recent_sign_in_confirms(codes, clock):
    ada = make.a_user("ada", role="operator")
    browser = visiting(ada)
    by_token = calling(token=make.a_token(ada)).post("/device/confirmations", form_for(codes))
    clock.shift(6 * MINUTE)
    late = browser.post("/device/confirmations", form_for(codes))

    assert by_token["Location"].startswith("/sign-in")
    assert late["Location"].startswith("/confirm?")
    assert poll(codes) == (400, "authorization_pending")


def test_a_person_who_was_switched_off_gets_no_token(codes):
    ada = make.a_user("ada", role="operator")
    visiting(ada).post("/device/confirmations", form_for(codes))
    type(ada).objects.update(is_active=False)

    assert poll(codes) == (400, "access_denied")
    assert not ApiToken.objects.exists()


def test_the_second_answer_loses():
    codes = begin(client="", address="", now=NOON)
    ada = make.a_user("ada", role="operator")
    first, second = (unanswered_request(codes.user_code, now=NOON) for _ in range(2))
    deny(first, ada, now=NOON)

    with pytest.raises(LostRace):
        confirm(second, ada, name="x", permissions=["see"], expires_at=NOON + MINUTE, now=NOON)

    assert not AuditEntry.objects.filter(verb="device.confirm").exists()


def test_requests_are_deleted_after_their_end():
    begin(client="", address="", now=NOON)

    assert forget(now=NOON + 20 * MINUTE) == 0
    assert forget(now=NOON + 80 * MINUTE) == 1


def test_of_two_polls_at_once_one_gets_a_token_that_is_revoked(monkeypatch):
    codes = begin(client="", address="", now=NOON)
    row = unanswered_request(codes.user_code, now=NOON)
    confirm(row, make.a_user("ada"), name="x", permissions=["see"], expires_at=NOON + MINUTE, now=NOON)
    issue_first = device_authorizations._issue

    def issue_second(*given, now):
        monkeypatch.setattr(device_authorizations, "_issue", issue_first)
        exchange(codes.device_code, now=now)  # another poll
        return issue_first(*given, now=now)

    monkeypatch.setattr(device_authorizations, "_issue", issue_second)
    with pytest.raises(device_authorizations.NotGranted, match="used before"):
        exchange(codes.device_code, now=NOON)

    assert ApiToken.objects.get().revoked_at == NOON
