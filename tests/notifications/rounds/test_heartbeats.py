"""Heartbeats: a receiver that expects them notices that Quarterdeck, or the way to it, is broken."""

import pytest

from edges.webhook_signatures import signature
from notifications.commands.channels import add_channel, change_channel
from notifications.commands.refusals import BadChannel
from notifications.models import Channel, Delivery
from notifications.queries import channel_rows
from tests.make import NOON
from tests.notifications.make import SIGNING
from tests.notifications.receivers import Answer

pytestmark = pytest.mark.django_db


@pytest.fixture
def add(receiver):
    def add(kind: str = "webhook", **given):
        secret = "env:QUARTERDECK_CHANNEL_KEY"
        settings = {"kind": kind, "address": receiver.url, "secret_from": secret, "heartbeat_min": 5}
        return add_channel("ops", actor="ada", now=NOON, **settings | given)

    return add


def test_a_heartbeat_is_sent_at_once_and_again_after_its_interval(add, receiver, route_and_send, clock):
    add()
    for seconds in (0, 299, 1):
        clock.later(seconds)
        route_and_send()

    first, second = receiver.received
    assert (first.json["type"], first.json["data"]) == ("heartbeat", {"instance": "default", "every_s": 300.0})
    named = first.headers["webhook-id"], first.headers["webhook-timestamp"]
    assert first.headers["webhook-signature"] == signature(SIGNING, *named, first.body)
    assert second.headers["webhook-id"] != first.headers["webhook-id"]
    channel = Channel.objects.get()
    assert (channel.heartbeat_at, channel.next_look_at) == (clock(), clock.now.replace(minute=10))
    assert not Delivery.objects.exists()


@pytest.mark.parametrize("answer", [Answer(500, "it broke"), Answer(401, "it broke"), Answer(is_cut=True)])
def test_one_that_fails_makes_the_channel_fail_and_is_sent_again_in_a_minute(
    answer, add, receiver, route_and_send, clock
):
    receiver.answers = [answer, Answer()]
    add()
    route_and_send()
    (row,) = channel_rows()
    assert (row.state, bool(row.channel.heartbeat_sentence), row.channel.heartbeat_at) == ("failing", True, None)

    clock.later(60)
    route_and_send()

    (row,) = channel_rows()
    assert (row.state, row.channel.heartbeat_at) == ("unused", clock())


@pytest.mark.parametrize(
    ("kind", "path"), [("pagerduty", "/v2/change/enqueue"), ("jira", "/v2/heartbeats/quarterdeck-default/ping")]
)
def test_a_pager_is_asked_without_waking_anybody(kind, path, add, receiver, route_and_send):
    add(kind)

    route_and_send()

    assert [each.path for each in receiver.received] == [path]


def test_none_is_sent_once_it_is_switched_off(add, receiver, route_and_send, clock):
    channel = add()
    change_channel(channel, actor="ada", now=NOON, heartbeat_min=0)

    clock.later(3600)
    route_and_send()

    assert receiver.received == []


def test_people_get_none(add):
    with pytest.raises(BadChannel, match="takes no heartbeats"):
        add("slack")
