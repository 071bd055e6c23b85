"""Which silences of mutes are created again, and when their rows are written."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from health.inbox import rule_mutes
from notifications.channels.base import Acceptance, SendOutcome
from notifications.models import Channel, Conversation
from notifications.rounds import own_silences
from notifications.rounds.own_silences import sync_silences
from notifications.rounds.silences import MOST_SILENCES, Silence, _SilenceStatus
from tests.make import a_cluster, a_finding
from tests.notifications.make import a_channel

pytestmark = pytest.mark.django_db


@pytest.fixture
def muted(monkeypatch) -> Conversation:
    """An alert with a silence of its mute, which a person ended in the Alertmanager."""
    now = timezone.now()
    channel = a_channel("alerts", "alertmanager", lease_until=now)
    finding = a_finding(a_cluster("eu-1"), rule="xid")
    mute = rule_mutes.mute(
        rule_mutes.scoped(finding, "finding"), actor="ada", reason="Known.", until=now + timedelta(hours=1), now=now
    )
    ended = Silence("1", "Quarterdeck default", "Muted by ada: Known.", now, _SilenceStatus("expired"))
    monkeypatch.setattr(own_silences, "_known", lambda *_: {f"quarterdeck/default/finding/{finding.pk}": [ended]})
    return Conversation.objects.create(
        channel=channel, key=f"finding/{finding.pk}", opened_at=now, silence_id="1", silence_until=mute.until
    )


def synced(silences: list[dict[str, str]]) -> list[str]:
    """Synchronizes the only channel, and returns the tables that were written."""
    channel, now = Channel.objects.get(), timezone.now()
    channel.silences = silences
    assert channel.take_lease(owner="worker-1", now=now)
    with CaptureQueriesContext(connection) as captured:
        assert not sync_silences(channel, channel.its_kind, now=now, until=float("inf"))
    channel.end_lease(now=now, next_look_at=None)
    return [each["sql"].split('"')[1] for each in captured if each["sql"].startswith("UPDATE")]


def test_a_row_that_is_right_is_not_written(muted):
    assert "notifications_conversation" not in synced([])

    Conversation.objects.update(silence_until=timezone.now())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_silences, "put_silence", lambda *_, **__: SendOutcome(Acceptance.ACCEPTED, 200, ref="2"))
        assert "notifications_conversation" in synced([])


def test_a_silence_beyond_those_that_are_stored_is_not_looked_for(muted, monkeypatch):
    def fail(*_):
        raise AssertionError("The Alertmanager is asked.")

    monkeypatch.setattr(own_silences, "_known", fail)
    others = [{"key": f"quarterdeck/default/finding/0{each}"} for each in range(MOST_SILENCES)]

    assert synced(others) == []
    with pytest.raises(AssertionError):
        synced(others[1:])
