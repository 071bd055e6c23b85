"""Quiet hours of a route: what they hold back is one digest, and criticals pass."""

import pytest

from notifications.models import Conversation, Delivery
from notifications.rounds.batch import STORM
from tests.make import a_cluster, a_finding, a_node
from tests.notifications.make import a_channel, catch_all, happened
from tests.notifications.receivers import Answer

pytestmark = pytest.mark.django_db
HOUR = 3600
# NOON is on a Saturday.
AFTERNOON = {"zone": "UTC", "start": "11:00", "end": "18:00", "days": [5], "holds_criticals": False}


@pytest.fixture
def chat(receiver, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_CHANNEL_CHAT", f"{receiver.url}/hook")
    monkeypatch.setenv("QUARTERDECK_CHANNEL_CHAT_CHANNELS", "*")
    channel = a_channel("chat", "slack", secret_from="env:QUARTERDECK_CHANNEL_CHAT")
    catch_all(channel, quiet=AFTERNOON)
    return channel


@pytest.fixture
def cluster():
    return a_cluster("eu-1")


def titles(receiver) -> list[str]:
    return [each.json["text"] for each in receiver.received]


def test_what_is_held_back_is_one_digest_at_the_end(chat, cluster, receiver, route_and_send, clock):
    findings = [a_finding(cluster, f"node {number}", severity="warning") for number in range(3)]
    for finding in findings:
        happened(finding)
        route_and_send()
    happened(findings[0], "finding.resolved", reason="")
    route_and_send()
    assert receiver.received == []

    clock.later(6 * HOUR)
    route_and_send()
    route_and_send()

    assert titles(receiver) == ["2 subjects from quiet hours: 2 warning"]
    text = receiver.received[0].body.decode()
    assert "1 subject ended meanwhile." in text
    assert "eu-1: 2 × x" in text


def test_criticals_pass_and_so_does_what_becomes_critical(chat, cluster, receiver, route_and_send, clock):
    happened(a_finding(cluster, "node 1", severity="critical"))
    held = a_finding(cluster, "node 2", severity="warning")
    happened(held)
    route_and_send()
    assert len(receiver.received) == 1

    held.severity = "critical"
    held.save()
    happened(held, "finding.worse", was="warning")
    route_and_send()
    clock.later(6 * HOUR)
    route_and_send()

    assert len(receiver.received) == 2  # and no empty digest
    assert not Conversation.objects.open().filter(key__startswith="digest").exists()


def test_criticals_are_held_back_where_it_says_so(chat, cluster, receiver, route_and_send, clock):
    catch_all(chat, quiet=AFTERNOON | {"holds_criticals": True})
    happened(a_finding(cluster, severity="critical"))

    route_and_send()

    assert receiver.received == []


def test_the_end_of_something_known_waits_but_what_comes_back_critical_does_not(
    chat, cluster, receiver, route_and_send, clock
):
    finding = a_finding(cluster, severity="warning")
    clock.later(-2 * HOUR)
    happened(finding)
    route_and_send()
    clock.later(2 * HOUR)
    happened(finding, "finding.resolved", reason="")
    route_and_send()
    assert len(receiver.received) == 1

    finding.severity = "critical"
    finding.save()
    happened(finding)
    route_and_send()

    assert [title.startswith("Resolved") for title in titles(receiver)] == [False, True, False]


def test_a_pager_is_not_woken_for_what_has_ended(cluster, receiver, route_and_send, clock):
    pager = a_channel("pager", "pagerduty", address=receiver.url, secret_from="env:QUARTERDECK_CHANNEL_KEY")
    catch_all(pager, quiet=AFTERNOON)
    finding = a_finding(cluster, severity="warning")
    happened(finding)
    happened(finding, "finding.resolved", reason="")
    route_and_send()

    clock.later(6 * HOUR)
    route_and_send()

    assert receiver.received == []
    assert set(Delivery.objects.values_list("state", flat=True)) == {"skipped"}


def test_a_storm_of_criticals_does_not_wait_for_the_morning(chat, cluster, receiver, route_and_send, clock):
    happened(a_finding(cluster, "first", severity="warning"))
    route_and_send()
    for number in range(STORM + 30):
        happened(a_finding(cluster, f"node {number}", severity="critical"))
    route_and_send()
    clock.later(11)
    route_and_send()

    assert titles(receiver)[-1] == "30 subjects at once: 30 critical"
    clock.later(6 * HOUR)
    route_and_send()
    assert titles(receiver)[-1] == "1 subject from quiet hours: 1 warning"


def test_the_second_channel_waits_until_the_hours_end(chat, cluster, receiver, route_and_send, clock):
    backup = a_channel("backup", "pagerduty", address=receiver.url, secret_from="env:QUARTERDECK_CHANNEL_KEY")
    catch_all(chat, escalates_to=backup, escalates_after_min=15)
    happened(a_finding(cluster, node=a_node(cluster), severity="warning"))
    route_and_send()
    clock.later(2 * HOUR)
    route_and_send()
    assert receiver.received == []
    receiver.answers = [Answer()]

    clock.later(4 * HOUR)
    route_and_send()
    clock.later(15 * 60)
    route_and_send()

    assert [each.json.get("event_action", "chat") for each in receiver.received] == ["chat", "trigger"]


def test_a_machine_gets_each_event_at_once(cluster, receiver, route_and_send):
    machine = a_channel("machine", address=receiver.url, secret_from="env:QUARTERDECK_CHANNEL_KEY")
    catch_all(machine, quiet=AFTERNOON)
    happened(a_finding(cluster, severity="note"))

    route_and_send()

    assert [each.json["type"] for each in receiver.received] == ["finding.opened"]
