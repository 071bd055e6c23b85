"""Acknowledgements from PagerDuty: who may send them, and which of them count."""

import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.test import Client

from fleet.models import DomainEvent
from health.models import Finding
from notifications.models import Channel
from people.sign_in import throttle
from tests.callers import now  # noqa: F401 (fixture)
from tests.make import NOON, a_cluster, a_finding
from tests.notifications.make import a_channel

pytestmark = pytest.mark.django_db
SECRET = "a-signing-secret-of-pagerduty"
PERSON = {"type": "user_reference", "id": "PXPGF42", "summary": "Earline Greenholt"}


@pytest.fixture(autouse=True)
def _secret(monkeypatch, now):  # noqa: F811
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY_WEBHOOK", SECRET)
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY_WEBHOOK_CHANNELS", "pager")
    a_channel("pager", "pagerduty", secret_from="env:QUARTERDECK_CHANNEL_KEY")


@pytest.fixture
def finding() -> Finding:
    found = a_finding(a_cluster("eu-1"), opened_at=NOON - timedelta(hours=1))
    Channel.objects.get(name="pager").conversations.create(key=f"finding/{found.pk}", opened_at=found.opened_at)
    return found


def event(finding: Finding, **given) -> dict:
    key = f"quarterdeck/default/finding/{finding.pk}"
    return {
        "id": "5ac64822",
        "event_type": "incident.acknowledged",
        "resource_type": "incident",
        "occurred_at": "2026-11-21T12:00:00.000Z",
        "agent": PERSON,
        "data": {"id": "PT4KHLK", "type": "incident", "status": "acknowledged", "incident_key": key},
    } | given


def sent(event: dict, *, name: str = "pager", secret: str = SECRET, more: str = "") -> tuple[int, str]:
    body = json.dumps({"event": event}).encode()
    signature = f"v1={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}{more}"
    client = Client(enforce_csrf_checks=True)
    reply = client.post(
        f"/hooks/pagerduty/{name}", body, content_type="application/json",
        headers={"X-PagerDuty-Signature": signature},
    )  # fmt: skip
    return reply.status_code, reply.json()["detail"]


def is_open(finding: Finding) -> bool:
    finding.refresh_from_db()
    return finding.state == "open"


def test_a_person_there_acknowledges_the_finding_here(finding):
    assert sent(event(finding), more=",v1=00") == (200, "Acknowledged.")

    finding.refresh_from_db()
    assert (finding.state, finding.acknowledged_by) == ("acknowledged", "Earline Greenholt (PagerDuty)")
    assert DomainEvent.objects.get().kind == "finding.acknowledged"


def test_a_channel_acknowledges_only_what_it_was_sent(finding):
    """Its secret proves who runs that receiver, and nothing about the findings of others."""
    Channel.objects.get(name="pager").conversations.all().delete()

    assert sent(event(finding)) == (200, "Ignored: this channel has never named the finding.")
    assert is_open(finding)


def test_the_same_event_again_changes_nothing(finding):
    sent(event(finding))

    assert sent(event(finding))[0] == 200
    assert DomainEvent.objects.count() == 1


@pytest.mark.parametrize(
    "given",
    [
        {"event_type": "incident.triggered"},
        {"agent": None},
        {"agent": PERSON | {"type": "events_api_v2_inbound_integration_reference"}},
        {"data": {"incident_key": "quarterdeck/another/finding/1"}},
        {"data": {"incident_key": "quarterdeck/default/finding/²"}},
        {"data": {"incident_key": "quarterdeck/default/plan/1"}},
        {"data": {}},
        {"occurred_at": "2026-11-21T10:00:00.000Z"},
    ],
    ids=[
        "another event",
        "nobody",
        "our own",
        "another installation",
        "no number",
        "a plan",
        "no key",
        "reopened since",
    ],
)
def test_what_no_person_did_to_this_opening_is_ignored(given, finding):
    status, sentence = sent(event(finding, **given))

    assert (status, sentence[:8]) == (200, "Ignored:")
    assert is_open(finding)


def test_a_resolved_finding_stays_resolved(finding):
    Finding.objects.filter(pk=finding.pk).update(state="resolved", resolved_at=NOON)

    assert sent(event(finding))[1].startswith("Ignored:")


@pytest.mark.parametrize(
    "given", [{"secret": "another"}, {"name": "unknown"}, {"name": "chat"}], ids=["secret", "channel", "kind"]
)
def test_without_the_right_signature_nothing_is_read(given, finding, monkeypatch):
    a_channel("chat", "slack", secret_from="env:QUARTERDECK_CHANNEL_KEY")
    monkeypatch.setattr(throttle, "WRONG_TOKENS", 1)

    assert sent(event(finding), **given)[0] == 401
    assert sent(event(finding), **given)[0] == 429
    assert is_open(finding)


def test_a_channel_that_is_not_listed_at_the_secret_receives_nothing(finding, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY_WEBHOOK_CHANNELS", "another")

    assert sent(event(finding))[0] == 401


def test_a_signed_body_that_is_no_event_is_refused(finding):
    assert sent({"id": 7})[0] == 400


def test_the_name_is_cut_and_has_no_control_characters(finding):
    sent(event(finding, agent=PERSON | {"summary": "a\x00\n" + "b" * 1000}))

    finding.refresh_from_db()
    assert finding.acknowledged_by == f"a{'b' * 99} (PagerDuty)"
