"""What each kind of channel sends, and what it makes of answers."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from edges.webhook_signatures import BadSigningSecret, signature
from notifications import channels
from notifications.channels import CHANNELS
from notifications.channels.base import Acceptance, ChannelSettings, DeliveryAct, HttpChannel, Notification
from tests.make import NOON
from tests.notifications.make import SIGNING

MESSAGE = Notification(
    key="quarterdeck/default/finding/7", kind="finding.opened", title="GPU Xid: GPU 3 of gpu-001 in eu-1",
    severity="critical", at=NOON, since=NOON - timedelta(minutes=5), cluster="eu-1", subject="GPU 3 of gpu-001",
    summary="Xid 79: <the GPU> fell off the bus & is gone.", impact="2 pods of 1 job have this GPU.",
    steps=("Drain the node.",), link="https://q.example.org/findings?finding=7", labels={"rule": "gpu-xid"},
)  # fmt: skip
TARGET = ChannelSettings("ops", "https://receiver.example.org/base/", SIGNING, ("oncall@example.org",))
HTTP = [kind for kind in CHANNELS.values() if isinstance(kind, HttpChannel)]


def body(key: str, act: DeliveryAct = DeliveryAct.OPEN, message: Notification = MESSAGE):
    request = CHANNELS[key].request(TARGET, message, act, delivery="quarterdeck-1", now=NOON)
    return None if request is None else json.loads(request.body)


def test_each_file_is_in_the_table():
    files = {path.stem for path in Path(channels.__file__).parent.glob("*.py")} - {"__init__", "base"}

    assert files == set(CHANNELS)


@pytest.mark.parametrize("kind", HTTP, ids=lambda kind: kind.key)
@pytest.mark.parametrize("act", DeliveryAct)
def test_each_says_what_where_and_what_to_do(kind, act):
    request = kind.request(TARGET, MESSAGE, act, delivery="quarterdeck-1", now=NOON)

    assert request is not None
    assert "quarterdeck/default/finding/7" in request.body.decode() + request.url.replace("%2F", "/") or kind.key in (
        "slack",
        "slack_bot",
        "teams",
    )
    if act is DeliveryAct.OPEN:
        said = request.body.decode()
        assert all(part in said for part in ("GPU 3 of gpu-001 in eu-1", "fell off the bus", "Drain the node."))


def test_the_signature_is_that_of_the_specification():
    """As in the example of the reference libraries (standard-webhooks, libraries/python/tests)."""
    told = signature(SIGNING, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')

    assert told == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_two_secrets_are_two_signatures_while_one_replaces_the_other():
    assert signature(f"{SIGNING} {SIGNING}", "a", "1", b"x").count("v1,") == 2


@pytest.mark.parametrize("secret", ["MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_c2hvcnQ=", "whsec_???"])
def test_a_weak_signing_secret_is_refused(secret):
    with pytest.raises(BadSigningSecret):
        signature(secret, "a", "1", b"x")


def test_a_pager_is_triggered_acknowledged_and_resolved_under_one_key():
    acknowledged = Notification(**{**MESSAGE.__dict__, "is_acknowledged": True})

    told = [
        body("pagerduty", act, message)
        for act, message in (
            (DeliveryAct.OPEN, MESSAGE),
            (DeliveryAct.UPDATE, MESSAGE),
            (DeliveryAct.UPDATE, acknowledged),
            (DeliveryAct.RESOLVE, MESSAGE),
        )
    ]

    assert [each["event_action"] for each in told] == ["trigger", "trigger", "acknowledge", "resolve"]
    assert {each["dedup_key"] for each in told} == {MESSAGE.key}
    assert told[0]["payload"]["severity"] == "critical"


def test_an_alert_keeps_its_labels_while_it_changes():
    changed = Notification(**{**MESSAGE.__dict__, "severity": "warning", "summary": "Other."})
    (first,), (second,) = body("alertmanager"), body("alertmanager", DeliveryAct.RESOLVE, changed)

    assert first["labels"] == second["labels"]
    assert first["endsAt"] > second["endsAt"]
    assert second["annotations"]["severity"] == "warning"


@pytest.mark.parametrize("key", ["slack", "teams"])
def test_where_nothing_can_be_edited_a_change_for_the_better_is_no_message(key):
    better = Notification(**{**MESSAGE.__dict__, "kind": "finding.better"})

    assert body(key, DeliveryAct.UPDATE, better) is None
    assert "Resolved: " in json.dumps(body(key, DeliveryAct.RESOLVE))


def test_slack_escapes_what_it_would_read_as_markup():
    assert "&lt;the GPU&gt; fell off the bus &amp; is gone" in body("slack")["blocks"][1]["text"]["text"]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [(200, "accepted"), (202, "accepted"), (400, "refused"), (404, "refused"), (408, "retry"), (429, "retry"),
     (500, "retry"), (503, "retry")],
)  # fmt: skip
def test_what_may_succeed_later_is_tried_again(status, verdict):
    assert CHANNELS["slack"].outcome(status, {}, "no_service").verdict == Acceptance(verdict)


@pytest.mark.parametrize(("header", "seconds"), [("7", 7.0), ("99999", 3600.0), ("Wed, 21 Oct", None), ("", None)])
def test_it_waits_as_long_as_it_is_asked_to(header, seconds):
    assert CHANNELS["slack"].outcome(429, {"retry-after": header}, "").retry_after_s == seconds


def test_a_chat_mentions_people_until_the_end():
    ada = {"name": "ada", "slack": "U0123456789", "teams": "ada@example.org"}
    message = Notification(**{**MESSAGE.__dict__, "mentions": (ada, ada | {"slack": "", "teams": ""})})

    assert body("slack", message=message)["blocks"][1]["text"]["text"].startswith("<@U0123456789>\n")
    card = body("teams", message=message)["attachments"][0]["content"]
    mentioned = {"id": "ada@example.org", "name": "ada"}
    assert card["msteams"] == {"entities": [{"type": "mention", "text": "<at>ada</at>", "mentioned": mentioned}]}
    assert card["body"][1]["text"] == "<at>ada</at>"
    for key in ("slack", "teams"):
        ended = json.dumps(body(key, DeliveryAct.RESOLVE, message))
        assert "U0123456789" not in ended
        assert "<at>" not in ended
