"""The finding about a channel that does not accept notifications."""

from datetime import timedelta

import pytest

from notifications.findings import KEY, UNDELIVERED
from notifications.models import Delivery
from tests.make import NOON, a_cluster, a_finding
from tests.notifications.make import a_channel, happened

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster():
    return a_cluster("eu-1")


def a_delivery(cluster, channel, *, rule: str = "xid", number: int = 1, **given) -> Delivery:
    event = happened(a_finding(cluster, f"node gpu-{number}", rule=rule))
    row = {"channel": channel, "channel_name": channel.name, "event": event, "key": event.key, "act": "open"}
    row |= {"message": {"title": "GPU lost", "labels": {"rule": rule}}, "digest": "", "sentence": "invalid_auth"}
    row |= {"created_at": NOON, "next_try_at": NOON}
    return Delivery.objects.create(**row | given)


def said(cluster, *, minutes: float = 0) -> list[tuple[str, str]]:
    return [
        (where, problem.summary) for where, problem in UNDELIVERED.say(cluster, now=NOON + timedelta(minutes=minutes))
    ]


@pytest.mark.parametrize(
    ("given", "is_reported"),
    [
        ({"state": "dead"}, True),
        ({"attempts": 5}, True),
        ({"attempts": 4}, False),
        ({"state": "sent", "attempts": 6}, False),
        ({"state": "dead", "act": "update"}, False),
        ({"state": "dead", "rule": KEY}, False),
    ],
)
def test_a_beginning_that_was_not_accepted_is_reported(given, is_reported, cluster):
    a_delivery(cluster, a_channel("pager", "pagerduty"), **given)

    assert said(cluster) == [("channel pager", "invalid_auth")] * is_reported
    assert said(a_cluster("us-1")) == []


def test_it_ends_with_a_repetition_that_arrives_and_after_a_day(cluster):
    channel = a_channel("pager", "pagerduty")
    first = a_delivery(cluster, channel, state="dead")
    second = a_delivery(cluster, channel, state="dead", number=2)

    assert len(said(cluster)) == 1
    again = Delivery.objects.get(pk=first.pk)
    again.pk, again.state, again.asked_by = None, "sent", "ada"
    again.save()
    ((_, problem),) = UNDELIVERED.say(cluster, now=NOON)
    assert problem.evidence[0].value == "1 message"
    assert UNDELIVERED.page(problem.facts) == f"/notifications/channels/{second.channel_id}"
    assert said(cluster, minutes=24 * 60) == []


def test_a_channel_that_is_switched_off_is_not_reported(cluster):
    a_delivery(cluster, a_channel("pager", "pagerduty", is_on=False), state="dead")

    assert said(cluster) == []
