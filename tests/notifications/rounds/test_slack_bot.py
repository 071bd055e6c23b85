"""A Slack bot edits its first message, by real HTTP."""

import json

import pytest

from notifications.commands.channels import add_channel
from notifications.commands.refusals import BadChannel
from notifications.models import Delivery
from tests.make import NOON, a_cluster, a_finding
from tests.notifications.make import catch_all, happened
from tests.notifications.receivers import Answer

pytestmark = pytest.mark.django_db
POSTED = Answer(body=json.dumps({"ok": True, "channel": "C0123456789", "ts": "1503435956.000247"}))


@pytest.fixture
def add(receiver, settings):
    receiver.answers = [POSTED]

    def add(recipients=("C0123456789",)):
        given = {"address": f"{receiver.url}/api", "secret_from": "env:QUARTERDECK_CHANNEL_KEY"}
        channel = add_channel("bot", actor="ada", now=NOON, kind="slack_bot", recipients=recipients, **given)
        catch_all(channel)
        return channel

    return add


def test_a_change_and_the_end_edit_the_first_message_and_worse_is_another(add, receiver, route_and_send):
    add()
    finding = a_finding(a_cluster("eu-1"))
    for kind, facts in (
        ("finding.opened", {}), ("finding.acknowledged", {"actor": "ada"}), ("finding.worse", {"was": "note"}),
        ("finding.resolved", {"reason": ""}),
    ):  # fmt: skip
        happened(finding, kind, **facts)
        route_and_send()

    posted, edited, worse, ended = receiver.received
    assert [each.path.rpartition(".")[2] for each in receiver.received] == [
        "postMessage", "update", "postMessage", "update",
    ]  # fmt: skip
    assert posted.json["channel"] == "C0123456789"
    assert edited.json["ts"] == ended.json["ts"] == "1503435956.000247"
    assert "ts" not in worse.json
    assert ended.json["text"].startswith("Resolved: ")
    assert posted.headers["Authorization"].startswith("Bearer ")


@pytest.mark.parametrize(("error", "state"), [("not_in_channel", "dead"), ("internal_error", "waiting")])
def test_a_refusal_with_status_200_is_one(error, state, add, receiver, route_and_send):
    add()
    receiver.answers = [Answer(body=json.dumps({"ok": False, "error": error}))]
    happened(a_finding(a_cluster("eu-1")))

    route_and_send()

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.sentence) == (state, error)


@pytest.mark.parametrize("recipients", [[], ["#alerts"], ["C0123456789", "C0123456780"]])
def test_the_channel_of_slack_is_one_id(recipients, add):
    with pytest.raises(BadChannel, match="id of one Slack channel"):
        add(recipients)
