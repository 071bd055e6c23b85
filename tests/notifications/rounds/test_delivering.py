"""From the outbox to receivers that speak real HTTP: nothing lost, nothing twice, in order."""

from datetime import timedelta
from ipaddress import ip_network

import pytest

from edges.webhook_signatures import signature
from fleet.models import DomainEvent
from health.evaluation.finding_events import event_of
from health.models import Finding
from notifications.commands.channels import remove_channel
from notifications.models import Channel, Conversation, Delivery
from notifications.models.router import KEY
from notifications.rounds import channel_round, router_round
from notifications.rounds.batch import STORM
from notifications.rounds.channel_round import run_channel
from notifications.rounds.router_round import run_router
from notifications.rounds.transport import send
from tests.health.telemetry.prometheus.a_server import a_server, saying
from tests.health.telemetry.prometheus.an_authority import Authority
from tests.make import NOON, a_cluster, a_finding, a_node
from tests.notifications.make import SIGNING, a_channel, catch_all, happened
from tests.notifications.receivers import Answer

pytestmark = pytest.mark.django_db
TEN_THOUSAND = 10_000


@pytest.fixture
def channel(receiver):
    channel = a_channel(address=f"{receiver.url}/hook", secret_from="env:QUARTERDECK_CHANNEL_KEY")
    catch_all(channel)
    return channel


@pytest.fixture
def finding():
    cluster = a_cluster("eu-1")
    return a_finding(cluster, node=a_node(cluster, "gpu-001"), severity="critical")


def kinds(receiver) -> list[str]:
    return [each.json["type"] for each in receiver.received]


def test_an_event_reaches_the_receiver_signed(channel, finding, receiver, route_and_send):
    happened(finding)

    route_and_send()

    (got,) = receiver.received
    at = got.headers["webhook-timestamp"]
    assert got.path == "/hook"
    assert got.headers["webhook-signature"] == signature(SIGNING, got.headers["webhook-id"], at, got.body)
    assert got.json["data"]["title"] == "eu-1: It is wrong."
    sent = Delivery.objects.get()
    assert (sent.state, sent.status, sent.attempts) == ("sent", 200, 1)


def test_its_end_follows_its_beginning_under_the_same_key(channel, finding, receiver, route_and_send):
    happened(finding)
    happened(finding, "finding.resolved", reason="")

    route_and_send()

    assert kinds(receiver) == ["finding.opened", "finding.resolved"]
    assert len({each.json["data"]["key"] for each in receiver.received}) == 1
    assert not Conversation.objects.open().exists()


@pytest.mark.parametrize(
    "answer", [Answer(500, "it broke"), Answer(429, headers={"retry-after": "7"}), Answer(is_cut=True)]
)
def test_what_is_not_accepted_is_sent_again_with_the_same_name(
    answer, channel, finding, receiver, route_and_send, clock
):
    receiver.answers = [answer, Answer()]
    happened(finding)

    route_and_send()
    assert Delivery.objects.get().state == "waiting"
    clock.later(4)
    route_and_send()
    assert len(receiver.received) == 1
    clock.later(4)
    route_and_send()

    assert Delivery.objects.get().state == "sent"
    assert len({each.headers["webhook-id"] for each in receiver.received}) == 1
    assert Channel.objects.get().state == "working"


def test_an_end_never_overtakes_its_beginning(channel, finding, receiver, route_and_send, clock):
    receiver.answers = [Answer(503), Answer()]
    happened(finding)
    route_and_send()
    happened(finding, "finding.resolved", reason="")
    route_and_send()
    clock.later(6)
    route_and_send()

    assert kinds(receiver) == ["finding.opened", "finding.opened", "finding.resolved"]


def test_what_is_refused_is_dead_with_the_receivers_own_words(channel, finding, receiver, route_and_send, clock):
    receiver.answers = [Answer(400, '{"message": "Event object is invalid", "errors": ["Length too long"]}')]
    happened(finding)

    route_and_send()
    clock.later(3600)
    route_and_send()

    dead = Delivery.objects.get()
    assert (dead.state, dead.status, dead.sentence) == ("dead", 400, "Event object is invalid: Length too long")
    assert len(receiver.received) == 1
    assert Channel.objects.get().sentence == dead.sentence


def test_after_a_day_it_is_given_up_and_the_next_event_begins_anew(channel, finding, receiver, route_and_send, clock):
    receiver.answers = [Answer(500)]
    happened(finding)
    for _ in range(12):
        route_and_send()
        clock.later(4 * 3600)

    assert Delivery.objects.get().state == "dead"
    receiver.answers = [Answer()]
    happened(finding, "finding.worse", was="warning", at=clock())
    route_and_send()

    assert kinds(receiver)[-1] == "finding.worse"
    assert Delivery.objects.first().act == "open"


def test_a_redirect_is_not_followed(channel, finding, receiver, route_and_send):
    receiver.answers = [Answer(302, headers={"location": "http://127.0.0.1:1/secret"})]
    happened(finding)

    route_and_send()

    assert len(receiver.received) == 1
    assert "Redirects are not followed" in Delivery.objects.get().sentence


def test_a_private_address_is_refused_unless_its_network_is_allowed(
    channel, finding, receiver, route_and_send, settings
):
    settings.NOTIFICATION_NETWORKS = []
    Channel.objects.update(address=receiver.url.replace("http://", "https://"))
    happened(finding)

    route_and_send()

    assert receiver.received == []
    assert "this host itself" in Delivery.objects.get().sentence


def test_a_worker_killed_before_it_sends_loses_nothing(channel, finding, receiver, route_and_send, clock, monkeypatch):
    happened(finding)
    with monkeypatch.context() as dying:
        dying.setattr(channel_round, "send", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            route_and_send()
    run_channel(channel.pk, owner="worker-2", clock=clock)
    assert receiver.received == []

    clock.later(61)
    run_channel(channel.pk, owner="worker-2", clock=clock)

    assert kinds(receiver) == ["finding.opened"]
    assert Delivery.objects.get().attempts == 2


def test_a_worker_killed_after_it_sent_repeats_under_the_same_name(
    channel, finding, receiver, route_and_send, clock, monkeypatch
):
    happened(finding)
    with monkeypatch.context() as dying:
        dying.setattr(channel_round, "_record", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            route_and_send()

    clock.later(61)
    run_channel(channel.pk, owner="worker-2", clock=clock)

    first, second = receiver.received
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


def test_a_worker_killed_while_it_routes_loses_and_doubles_nothing(channel, finding, clock, monkeypatch):
    happened(finding)
    with monkeypatch.context() as dying:
        dying.setattr(router_round, "wake_channels", lambda *_, **__: None)
        dying.setattr(router_round.RoutedBatch, "write", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_router(KEY, owner="worker-1", clock=clock)
    assert not Delivery.objects.exists()

    clock.later(31)
    run_router(KEY, owner="worker-2", clock=clock)
    run_router(KEY, owner="worker-2", clock=clock)

    assert Delivery.objects.count() == 1


def test_two_workers_do_not_send_the_same(channel, finding, receiver, clock):
    happened(finding)
    run_router(KEY, owner="worker-1", clock=clock)
    Channel.objects.filter(pk=channel.pk).update(lease_until=NOON + timedelta(seconds=60), epoch=4)

    run_channel(channel.pk, owner="worker-2", clock=clock)

    assert receiver.received == []


def test_a_channel_that_is_switched_off_gets_nothing_new(channel, finding, receiver, route_and_send):
    Channel.objects.update(is_on=False)
    happened(finding)

    route_and_send()

    assert (receiver.received, Delivery.objects.count()) == ([], 0)


def test_a_secret_that_is_missing_is_said_and_tried_again(
    channel, finding, receiver, route_and_send, monkeypatch, clock
):
    monkeypatch.delenv("QUARTERDECK_CHANNEL_KEY")
    happened(finding)
    route_and_send()
    assert "This place has no secret for this channel" in Channel.objects.get().sentence

    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY", SIGNING)
    clock.later(6)
    route_and_send()

    assert kinds(receiver) == ["finding.opened"]


def test_a_certificate_of_another_name_is_refused_and_says_so(finding, settings, tmp_path, route_and_send):
    settings.NOTIFICATION_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.SECRETS_DIR = str(tmp_path)
    authority = Authority(tmp_path, "ours")
    assert authority.ca_file.endswith("ours.pem")
    (tmp_path / "key").write_text(SIGNING)
    (tmp_path / "key.channels").write_text("*")
    with a_server(saying(b"{}"), trusted=authority.serving(host="example.org")) as (url, server):
        catch_all(a_channel(address=f"{url}/hook", secret_from="file:key", ca_file="ours.pem"))
        happened(finding)
        route_and_send()

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status) == ("waiting", 0)
    assert delivery.sentence.startswith("The server's certificate is for another host name.")
    assert server.headers_seen == []


def test_a_channel_that_is_removed_while_a_page_is_sent_ends_its_round_and_stays_in_the_log(
    channel, finding, receiver, clock, monkeypatch
):
    def remove_meanwhile(*args, **given):
        outcome = send(*args, **given)
        catch_all()
        remove_channel(Channel.objects.get(), actor="ada", now=NOON)
        return outcome

    happened(finding)
    run_router(KEY, owner="worker-1", clock=clock)
    monkeypatch.setattr(channel_round, "send", remove_meanwhile)

    run_channel(channel.pk, owner="worker-1", clock=clock)

    delivery = Delivery.objects.get()
    assert (len(receiver.received), delivery.channel, delivery.channel_name) == (1, None, "ops")
    assert (delivery.state, delivery.sentence) == ("dead", "The channel was removed by ada.")


@pytest.mark.nightly
def test_ten_thousand_events_at_once_are_twenty_messages_and_one_digest(receiver, monkeypatch, clock):
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY", f"{receiver.url}/hook")  # whose secret is its address
    catch_all(a_channel("chat", "slack", secret_from="env:QUARTERDECK_CHANNEL_KEY"))
    first = a_finding(a_cluster("eu-1"))
    columns = {
        field.attname: getattr(first, field.attname) for field in Finding._meta.concrete_fields if field.name != "id"
    }
    others = [Finding(**columns | {"subject": f"node {number}"}) for number in range(TEN_THOUSAND - 1)]
    Finding.objects.bulk_create(others)
    events = [event_of(finding, "finding.opened", now=NOON) for finding in Finding.objects.select_related("cluster")]
    for event in events:
        event.is_settled = True
    DomainEvent.write(events)

    while DomainEvent.objects.filter(routed_at=None).exists():
        run_router(KEY, owner="worker-1", clock=clock)

    assert Conversation.objects.open().exclude(key__startswith="digest/").count() == TEN_THOUSAND
    (digest,) = Delivery.objects.filter(act="digest")
    assert Delivery.objects.count() == STORM + 1
    clock.later(60)
    run_channel(digest.channel_id, owner="worker-1", clock=clock)
    digest.refresh_from_db()
    assert len(receiver.received) == STORM + 1
    assert digest.message["title"] == f"{TEN_THOUSAND - STORM} subjects at once: {TEN_THOUSAND - STORM} warning"
    assert digest.message["details"] == [f"eu-1: {TEN_THOUSAND - STORM} × x"]
