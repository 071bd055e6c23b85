"""Decisions reach a SIEM in order and at least once, by syslog over TLS and by signed webhook."""

import json
import re
from datetime import timedelta
from ipaddress import ip_network

import pytest

from edges.webhook_signatures import signature
from kube.credentials import life_of_certificate
from notifications.commands.channels import add_channel, change_channel, send_test
from notifications.commands.refusals import BadChannel
from notifications.models import Channel, Delivery
from notifications.queries import audit_exports
from people.models import AuditEntry
from tests.health.telemetry.prometheus.an_authority import Authority
from tests.make import NOON
from tests.notifications.make import SIGNING, a_channel
from tests.notifications.receivers import Answer
from tests.notifications.syslog_receiver import a_syslog_receiver

pytestmark = pytest.mark.django_db
EARLIER = NOON - timedelta(hours=1)


@pytest.fixture
def trusted(settings, tmp_path) -> Authority:
    settings.NOTIFICATION_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.SECRETS_DIR = str(tmp_path)
    authority = Authority(tmp_path, "company")
    assert authority.ca_file.endswith("company.pem")
    return authority


@pytest.fixture
def siem(trusted):
    with a_syslog_receiver(trusted.serving()) as receiver:
        yield receiver


def an_export(receiver, **given) -> Channel:
    settings = {"kind": "syslog", "address": f"tls://127.0.0.1:{receiver.port}", "ca_file": "company.pem"}
    return add_channel("siem", actor="ada", now=NOON, **settings | {"audit_format": "json"} | given)


def decide(*verbs: str, at=EARLIER, **evidence) -> list[int]:
    return [AuditEntry.record("plan-1", verb=verb, actor="ada", evidence=evidence, now=at).pk for verb in verbs]


def exported(texts: list[str]) -> list[str]:
    return [json.loads(text.split(" - ", 2)[2])["verb"] for text in texts]


def test_syslog_carries_each_decision_as_one_message_in_order(siem, route_and_send, clock):
    decide("start", "halt")
    an_export(siem)

    route_and_send()
    clock.later(180)
    decide("resume", at=NOON)
    route_and_send()

    first, *_ = siem.wait_for(4)
    assert re.match(r"<109>1 2026-11-21T11:00:00\.000000Z default quarterdeck - audit - \{", first)
    assert exported(siem.wait_for(4)) == ["start", "halt", "channel.add", "resume"]
    (export,) = audit_exports()
    assert (export.state, export.channel.audit_sentence) == ("working", "")


def test_a_receiver_that_breaks_the_connection_gets_the_same_again(siem, route_and_send, clock):
    decide("start", "halt")
    an_export(siem)
    siem.is_cut = True

    route_and_send()
    (failing,) = audit_exports()
    assert (failing.state, failing.channel.audit_after, failing.has_more) == ("failing", 0, True)
    assert "broke" in failing.channel.audit_sentence
    clock.later(30)
    route_and_send()

    assert exported(siem.wait_for(2)) == ["start", "halt"]
    assert audit_exports()[0].channel.audit_sentence == ""


def test_a_late_receiver_is_waited_for_and_one_that_never_reads_is_not(siem, route_and_send, clock, monkeypatch):
    decide("start")
    an_export(siem)
    monkeypatch.setattr("health.sources.streams.SENT_S", 1.0)
    siem.late_s = 30.0
    route_and_send()
    assert "did not take everything" in audit_exports()[0].channel.audit_sentence

    siem.late_s = 0.3
    clock.later(30)
    route_and_send()

    assert exported(siem.wait_for(1)) == ["start"]


def test_a_receiver_that_is_away_is_named(siem, route_and_send):
    decide("start")
    channel = an_export(siem)
    Channel.objects.filter(pk=channel.pk).update(address="tls://127.0.0.1:1")

    route_and_send()

    assert "cannot be reached" in audit_exports()[0].channel.audit_sentence


@pytest.mark.parametrize(
    ("served", "sentence"),
    [({"host": "192.0.2.1"}, "another host name"), ({"to": timedelta(hours=-1)}, "has expired")],
)
def test_nothing_is_sent_to_a_wrong_certificate(served, sentence, trusted, route_and_send):
    decide("start")
    with a_syslog_receiver(trusted.serving(**served)) as receiver:
        an_export(receiver)
        route_and_send()

        assert receiver.streams in ([], [b""])
    assert sentence in audit_exports()[0].channel.audit_sentence


def test_nothing_is_sent_to_a_stranger_s_certificate(trusted, route_and_send, tmp_path):
    decide("start")
    with a_syslog_receiver(Authority(tmp_path, "stranger").serving()) as receiver:
        an_export(receiver)
        route_and_send()

    assert "did not sign the server's certificate" in audit_exports()[0].channel.audit_sentence


@pytest.fixture
def strict_siem(trusted):
    """A receiver that takes clients of the company alone."""
    with a_syslog_receiver(trusted.serving(clients_of=trusted.ca_file)) as receiver:
        yield receiver


def test_syslog_shows_its_client_certificate(strict_siem, trusted, route_and_send, tmp_path):
    decide("start")
    trusted.issue("client")
    (tmp_path / "client.pem.channels").write_text("siem")
    an_export(strict_siem, secret_from="file:client.pem")

    route_and_send()

    assert exported(strict_siem.wait_for(1)) == ["start"]


def test_the_end_of_a_client_certificate_is_read_each_day_also_without_messages(
    trusted, route_and_send, clock, tmp_path
):
    trusted.issue("client", to=timedelta(days=90))
    (tmp_path / "client.pem.channels").write_text("siem")
    a_channel("siem", "syslog", address="tls://127.0.0.1:1", secret_from="file:client.pem")

    route_and_send()

    channel, life = Channel.objects.get(), life_of_certificate((tmp_path / "client.pem").read_bytes(), "")
    assert channel.certificate_until == life.ends_at
    assert channel.next_look_at == clock() + timedelta(days=1)


@pytest.mark.parametrize(
    ("content", "channels", "sentence"),
    [
        ("client", "another", "This place has no secret for this channel"),
        ("", "siem", "This place has no secret for this channel"),
        ("no certificate", "siem", "The client certificate cannot be used"),
        ("stranger", "siem", "he connection"),
        (None, "siem", "he connection"),
    ],
)
def test_a_receiver_that_wants_a_certificate_gets_nothing_without_it(
    content, channels, sentence, strict_siem, trusted, route_and_send, tmp_path
):
    decide("start")
    if content in {"client", "stranger"}:
        issuer = trusted if content == "client" else Authority(tmp_path, "stranger")
        issuer.issue("client")
    else:
        (tmp_path / "client.pem").write_text(content or "")
    (tmp_path / "client.pem.channels").write_text(channels)
    an_export(strict_siem, secret_from="" if content is None else "file:client.pem")

    route_and_send()

    assert not strict_siem.messages
    export = audit_exports()[0].channel
    assert sentence in export.audit_sentence
    assert export.audit_after == 0


def test_a_client_certificate_is_a_file(siem):
    with pytest.raises(BadChannel, match="A client certificate is a file"):
        an_export(siem, secret_from="env:QUARTERDECK_CHANNEL_X")


def test_evidence_that_syslog_would_cut_is_left_out_as_a_whole(siem, route_and_send):
    decide("start", plan="x" * 9000)
    an_export(siem)

    route_and_send()

    (message,) = siem.wait_for(1)
    assert len(message) < 8192
    assert json.loads(message.split(" - ", 2)[2])["evidence"]["left_out_bytes"] > 9000


def test_a_test_message_is_sent_by_syslog_too(siem, route_and_send):
    channel = an_export(siem, audit_format="none")
    send_test(channel, actor="ada", now=NOON)

    route_and_send()

    assert " quarterdeck - notification - {" in siem.wait_for(1)[0]
    assert Delivery.objects.get().state == "sent"


def test_a_webhook_gets_signed_batches_and_its_cursor_moves_only_when_it_accepts(receiver, route_and_send, clock):
    keys = decide("start", "halt")
    receiver.answers = [Answer(503, "busy", {"retry-after": "120"}), Answer()]
    add_channel(
        "siem", actor="ada", now=NOON, kind="webhook", address=receiver.url, audit_format="ocsf",
        secret_from="env:QUARTERDECK_CHANNEL_KEY",
    )  # fmt: skip

    for seconds in (0, 119, 1):
        clock.later(seconds)
        route_and_send()

    first, second = receiver.received
    assert first.headers["webhook-id"] == f"audit-default-{keys[0]}-{keys[1]}"
    assert [event["activity_name"] for event in second.json["data"]][:2] == ["start", "halt"]
    named = second.headers["webhook-id"], second.headers["webhook-timestamp"]
    assert second.headers["webhook-signature"] == signature(SIGNING, *named, second.body)
    assert audit_exports()[0].channel.audit_after >= keys[1]


def test_a_worker_that_dies_after_sending_sends_the_same_again(receiver, route_and_send, monkeypatch, clock):
    decide("start")
    add_channel(
        "siem", actor="ada", now=NOON, kind="webhook", address=receiver.url, audit_format="json",
        secret_from="env:QUARTERDECK_CHANNEL_KEY",
    )  # fmt: skip
    with monkeypatch.context() as dying:
        dying.setattr("notifications.rounds.audit_export._record", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            route_and_send()
    clock.later(61)

    route_and_send()

    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


@pytest.mark.parametrize("address", ["tls://10.0.0.1", "tls://169.254.169.254:6514"])
def test_a_forbidden_address_is_refused(address, settings):
    settings.NOTIFICATION_NETWORKS = []
    with pytest.raises(BadChannel):
        add_channel("siem", actor="ada", now=NOON, kind="syslog", address=address, audit_format="json")


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("address", {"kind": "syslog", "address": "https://127.0.0.1"}),
        ("address", {"kind": "syslog", "address": "tls://u:p@127.0.0.1"}),
        ("address", {"kind": "syslog", "address": "tls://127.0.0.1:x"}),
        ("audit_format", {"kind": "mail", "recipients": ["a@example.org"], "audit_format": "json"}),
        ("audit_format", {"kind": "syslog", "address": "tls://127.0.0.1", "audit_format": "cef"}),
    ],
)
def test_what_no_export_can_be_is_refused_with_its_field(field, given, trusted):
    with pytest.raises(BadChannel) as wrong:
        add_channel("siem", actor="ada", now=NOON, **given)

    assert wrong.value.field == field


def test_an_export_that_is_switched_off_fails_no_longer_and_continues_later(siem, route_and_send, clock):
    decide("start")
    channel = an_export(siem)
    siem.is_cut = True
    route_and_send()

    change_channel(channel, actor="ada", now=NOON, audit_format="none")
    assert not Channel.objects.failing().exists()
    change_channel(channel, actor="ada", now=NOON, audit_format="ocsf")
    route_and_send()

    (message,) = siem.wait_for(1)
    assert json.loads(message.split(" - ", 2)[2])["activity_name"] == "start"


def test_a_channel_of_another_kind_does_not_keep_an_unfit_address(siem):
    channel = an_export(siem, is_on=False)
    given = {"kind": "webhook", "secret_from": "env:QUARTERDECK_CHANNEL_KEY", "audit_format": "none"}

    with pytest.raises(BadChannel) as wrong:
        change_channel(channel, actor="ada", now=NOON, **given)

    assert wrong.value.field == "address"
