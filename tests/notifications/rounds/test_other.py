"""Other services, through the real apprise and real HTTP."""

import logging
from io import StringIO
from ipaddress import ip_network

import pytest
from apprise.plugins.discord import NotifyDiscord

from health.telemetry.prometheus.answers import Unusable
from notifications.channels import other
from notifications.channels.base import Acceptance
from notifications.channels.other import HOSTS, BadAppriseAddress, OtherContent, host_of
from notifications.commands.channels import send_test
from notifications.models import Delivery
from notifications.rounds.apprise_posts import post_through_apprise
from tests.make import NOON, a_cluster, a_finding
from tests.notifications.make import a_channel, catch_all, happened
from tests.notifications.receivers import Answer

TOKEN = "0123456789abcdefghijABCDEFGHIJ-_0123456789abcdefghijABCDEFGHIJ-_4567"
ADDRESS = f"discord://4174216298/{TOKEN}"
CONTENT = OtherContent("GPU lost", "Xid 79.")


@pytest.fixture
def discord(receiver, monkeypatch):
    """A receiver in the place of discord.com."""
    monkeypatch.setitem(other.HOSTS, "discord", receiver.url.partition("://")[2])
    monkeypatch.setattr(NotifyDiscord, "notify_url", f"{receiver.url}/api/webhooks")
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY", ADDRESS)
    return receiver


@pytest.fixture
def channel(discord):
    return a_channel("notes", "other", secret_from="env:QUARTERDECK_CHANNEL_KEY")


@pytest.mark.django_db
def test_it_opens_becomes_worse_and_has_no_end(channel, discord, route_and_send):
    catch_all(channel)
    finding = a_finding(a_cluster("eu-1"), title="GPU 3 of gpu-001 is too hot", severity="warning")
    for kind, facts in (
        ("finding.opened", {}),
        ("finding.better", {"was": "critical"}),
        ("finding.worse", {"was": "warning"}),
        ("finding.resolved", {"reason": ""}),
    ):
        happened(finding, kind, **facts)
        route_and_send()

    bodies = [each.body.decode() for each in discord.received]
    assert len(bodies) == 2
    assert all("GPU 3 of gpu-001 is too hot" in body for body in bodies)
    assert discord.received[0].path.startswith(f"/api/webhooks/4174216298/{TOKEN}")
    states = Delivery.objects.order_by("pk").values_list("act", "state")
    assert list(states) == [("open", "sent"), ("update", "skipped"), ("update", "sent"), ("resolve", "skipped")]


@pytest.mark.django_db
@pytest.mark.parametrize(("status", "state"), [(401, "dead"), (404, "dead"), (500, "dead")])
def test_a_test_shows_the_words_of_the_library_without_the_token(status, state, channel, discord, route_and_send):
    discord.answers = [Answer(status, "{}")]
    send_test(channel, actor="ada", now=NOON)

    route_and_send(is_routed=False)

    delivery = Delivery.objects.get()
    assert (delivery.state, delivery.status) == (state, status)
    assert "Failed to send Discord notification" in delivery.sentence
    assert TOKEN not in delivery.sentence


@pytest.mark.parametrize(("status", "verdict"), [(403, "refused"), (429, "retry"), (503, "retry"), (204, "accepted")])
def test_what_may_be_sent_again(status, verdict, discord):
    discord.answers = [Answer(status, "" if status == 204 else "{}", headers={"X-RateLimit-Remaining": "0"})]

    assert post_through_apprise(ADDRESS, CONTENT, "warning").verdict is Acceptance(verdict)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.ERROR])
def test_the_level_of_the_log_changes_no_outcome_and_no_line_has_the_token(level, discord, monkeypatch):
    discord.answers = [Answer(404, "{}")]
    root, written = logging.getLogger(), StringIO()
    monkeypatch.setattr(root, "handlers", [logging.StreamHandler(written)])  # pytest's own sees each logger
    before = root.level
    root.setLevel(level)
    try:
        outcome = post_through_apprise(ADDRESS, CONTENT, "warning")
    finally:
        root.setLevel(before)

    assert (outcome.verdict, outcome.status) == (Acceptance.REFUSED, 404)
    assert "Failed to send Discord notification" not in written.getvalue()
    assert TOKEN not in written.getvalue()


def test_a_redirect_is_not_followed(discord):
    discord.answers = [Answer(302, headers={"location": f"{discord.url}/elsewhere"})]

    assert post_through_apprise(ADDRESS, CONTENT, "warning").verdict is Acceptance.RETRY
    assert [each.path.split("?")[0] for each in discord.received] == [f"/api/webhooks/4174216298/{TOKEN}"]


@pytest.mark.parametrize(
    "address",
    [
        "json://10.0.0.1/", "jsons://example.org", "gotify://10.0.0.1/x", "mailto://a:b@example.org", "file:///etc",
        "https://discord.com/api/webhooks/1/2", f"{ADDRESS}?verify=no", f"{ADDRESS}, json://10.0.0.1", "", "discord",
    ],
)  # fmt: skip
def test_other_services_and_options_are_refused(address):
    with pytest.raises(BadAppriseAddress):
        host_of(address)


def test_a_service_whose_name_leads_to_a_private_address_is_refused(settings, monkeypatch):
    settings.NOTIFICATION_NETWORKS = []
    monkeypatch.setitem(other.HOSTS, "discord", "127.0.0.1")

    with pytest.raises(Unusable):
        post_through_apprise(ADDRESS, CONTENT, "warning")


def test_an_address_that_apprise_cannot_use_says_why(discord):
    with pytest.raises(Unusable, match="Discord"):
        post_through_apprise("discord://4174216298", CONTENT, "warning")


@pytest.mark.parametrize("token", ["1f0e9d8c7b6a59483726150f1e2d3c4b", "1f0e9d8c%237b6a59483726"])
def test_an_address_that_apprise_cannot_use_is_not_repeated(token, settings, monkeypatch):
    settings.NOTIFICATION_NETWORKS = [ip_network("127.0.0.0/8")]
    monkeypatch.setitem(other.HOSTS, "dingtalk", "127.0.0.1")

    with pytest.raises(Unusable, match=r"An invalid DingTalk \w.* \(\[redacted\]\) was specified"):
        post_through_apprise(f"dingtalk://a+secret@{token}", CONTENT, "warning")


def test_the_hosts_are_those_of_the_library():
    """A new release that sends elsewhere fails here."""
    from apprise import manager_plugins

    plugins = manager_plugins.NotificationManager()
    for scheme, host in HOSTS.items():
        assert f"https://{host}/" in plugins[scheme].notify_url + "/", scheme
