"""What people do with channels and routes: checked, recorded, and refused in a sentence."""

import pytest

from edges.transition_errors import LostRace
from notifications.commands.channels import add_channel, change_channel, mark_of, remove_channel, resend, send_test
from notifications.commands.refusals import BadChannel, BadRoute, NotificationRefusal
from notifications.commands.routes import mark_of as mark_of_route
from notifications.commands.routes import move_route, put_route, remove_route
from notifications.models import Channel, Delivery, Route
from people.models import AuditEntry
from tests.make import NOON, a_cluster, a_finding, a_pool
from tests.notifications.make import a_channel, a_route, catch_all, happened
from tests.notifications.receivers import Answer

pytestmark = pytest.mark.django_db
BY = {"actor": "ada", "now": NOON}
SECRET = "env:QUARTERDECK_CHANNEL_KEY"


def added(name: str = "pager", kind: str = "pagerduty", **given) -> Channel:
    return add_channel(name, kind=kind, **{"secret_from": SECRET} | given, **BY)


def test_a_channel_is_recorded_without_its_secret(monkeypatch):
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY", "very-secret")

    channel = added()

    entry = AuditEntry.objects.get(subject=f"channel:{channel.pk}")
    assert (entry.verb, channel.address) == ("channel.add", "https://events.pagerduty.com")
    assert "very-secret" not in str(entry.evidence)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": "two words"}, "name"),
        ({"kind": "pigeon"}, "kind"),
        ({"secret_from": ""}, "secret_from"),
        ({"secret_from": "very-secret"}, "secret_from"),
        ({"secret_from": "env:QUARTERDECK_SECRET_KEY"}, "secret_from"),
        ({"secret_from": "env:QUARTERDECK_SOURCE_X"}, "secret_from"),
        ({"kind": "webhook", "address": "https://127.0.0.1/hook"}, "address"),
        ({"kind": "webhook", "address": "https://10.0.0.7/hook"}, "address"),
        ({"kind": "webhook", "address": "https://169.254.169.254/latest"}, "address"),
        ({"kind": "webhook", "address": "ftp://192.0.2.1/"}, "address"),
        ({"kind": "webhook", "address": "https://user:password@93.184.216.34/"}, "address"),
        ({"kind": "mail", "recipients": []}, "recipients"),
        ({"kind": "mail", "recipients": ["nobody"]}, "recipients"),
        ({"ca_file": "../outside"}, "ca_file"),
    ],
)
def test_what_cannot_be_is_refused_beside_its_field(given, field):
    with pytest.raises(BadChannel) as refused:
        added(**given)

    assert refused.value.field == field
    assert not Channel.objects.exists()


def test_a_name_is_taken_once_and_a_repeated_key_adds_nothing():
    first = added(key="k1")

    assert added(key="k1").pk == first.pk
    with pytest.raises(NotificationRefusal):
        added(key="k2")


@pytest.mark.parametrize(
    "other", [{"secret_from": "file:other"}, {"is_on": False}, {"zone": "Europe/Berlin"}, {"name": "another"}]
)
def test_a_key_that_added_other_settings_is_refused(other):
    added(key="k1")

    with pytest.raises(NotificationRefusal, match=r"already used for channel\.add at"):
        added(key="k1", **other)

    assert Channel.objects.get().name == "pager"


def test_a_key_of_a_version_with_fewer_settings_still_adds_nothing():
    channel = added(key="k1")
    entry = AuditEntry.objects.get(verb="channel.add")
    fewer = {name: value for name, value in entry.evidence.items() if name not in ("zone", "heartbeat_min")}
    AuditEntry.objects.all().delete()
    AuditEntry.record(entry.subject, verb=entry.verb, actor=entry.actor, evidence=fewer, now=NOON)

    assert added(key="k1") == channel
    with pytest.raises(NotificationRefusal, match="already used"):
        added(key="k1", zone="Europe/Berlin")


def test_a_key_belongs_to_one_person():
    added(key="k1")

    with pytest.raises(NotificationRefusal, match="There is a channel pager already"):
        add_channel("pager", kind="pagerduty", secret_from=SECRET, key="k1", actor="bob", now=NOON)


def test_a_repeat_says_what_became_of_the_channel():
    channel = added(key="k1")

    change_channel(channel, is_on=False, actor="bob", now=NOON)
    with pytest.raises(NotificationRefusal, match=r"no longer in effect\. .*pager is different now: switched on no\."):
        added(key="k1")
    change_channel(channel, is_on=True, actor="bob", now=NOON)
    assert added(key="k1") == channel
    remove_channel(channel, actor="bob", now=NOON)
    with pytest.raises(NotificationRefusal, match=r"The channel pager was removed\."):
        added(key="k1")

    assert not Channel.objects.exists()


def test_a_form_that_was_opened_before_a_change_is_refused():
    channel = added()
    was = mark_of(channel)
    change_channel(channel, was=was, is_on=False, **BY)

    with pytest.raises(LostRace):
        change_channel(channel, was=was, is_on=True, **BY)


def test_a_worker_with_the_old_settings_records_nothing():
    channel = added()
    channel.take_lease(owner="worker-1", now=NOON)

    change_channel(channel, secret_from="file:pager", **BY)

    with pytest.raises(LostRace):
        channel.keep_lease(now=NOON)


def test_a_channel_that_a_route_names_stays():
    channel = added()
    a_route("pages", channel)

    with pytest.raises(NotificationRefusal, match="pages"):
        remove_channel(channel, **BY)


def test_what_waits_for_a_removed_channel_is_given_up_and_stays_in_the_log(route_and_send, clock):
    channel = a_channel("chat", "slack")
    route = catch_all(channel)
    happened(a_finding(a_cluster()))
    route_and_send()
    route.channels.clear()

    remove_channel(channel, **BY)

    left = Delivery.objects.get()
    assert (left.state, left.channel, left.channel_name) == ("dead", None, "chat")
    assert "removed by ada" in left.sentence
    with pytest.raises(NotificationRefusal, match="was removed"):
        resend(left, **BY)


def test_a_test_is_sent_once_and_shows_the_receivers_own_words(receiver, route_and_send, clock):
    channel = a_channel(address=receiver.url, secret_from=SECRET)
    receiver.answers = [Answer(403, "invalid_token")]

    test = send_test(channel, **BY)
    route_and_send()
    clock.later(3600)
    route_and_send()

    test.refresh_from_db()
    assert (test.state, test.status, test.sentence) == ("dead", 403, "invalid_token")
    assert len(receiver.received) == 1


def test_a_secret_that_comes_back_in_an_answer_is_cut_out(receiver, route_and_send, monkeypatch):
    monkeypatch.setenv("QUARTERDECK_CHANNEL_KEY", "the-routing-key-of-ops")
    channel = a_channel(kind="pagerduty", address=receiver.url, secret_from=SECRET)
    receiver.answers = [Answer(400, '{"message": "no such key: the-routing-key-of-ops"}')]

    test = send_test(channel, **BY)
    route_and_send()

    test.refresh_from_db()
    assert test.sentence == "no such key: [redacted]"


def test_a_dead_letter_is_sent_again_as_another_delivery(receiver, route_and_send):
    catch_all(a_channel(address=receiver.url, secret_from=SECRET))
    receiver.answers = [Answer(400, "no"), Answer()]
    happened(a_finding(a_cluster()))
    route_and_send()

    again = resend(Delivery.objects.get(), **BY)
    route_and_send()

    again.refresh_from_db()
    assert again.state == "sent"
    assert Delivery.objects.count() == 2


def test_routes_are_tried_in_an_order_that_people_change():
    first, second = a_route("first", position=1), a_route("second", position=2)

    move_route(second, up=True, **BY)
    move_route(second, up=True, **BY)

    assert [route.name for route in Route.in_order()] == ["second", "first", "Everything else"]
    assert AuditEntry.objects.filter(subject=f"route:{second.pk}", verb="route.move").count() == 1
    assert first.pk


def test_the_catch_all_is_always_there_and_matches_everything():
    last = Route.catch_all()
    channel = added()

    for act in (remove_route, lambda route, **by: move_route(route, up=True, **by)):
        with pytest.raises(NotificationRefusal):
            act(last, **BY)
    put_route(last, "Another name", channels=["pager"], places=["eu-1"], **BY)

    last.refresh_from_db()
    assert (last.name, last.places, list(last.channels.all())) == ("Everything else", [], [channel])


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": " "}, "name"),
        ({"channels": ["gone"]}, "channels"),
        ({"places": ["eu-2"]}, "places"),
        ({"kinds": ["no-rule"]}, "kinds"),
        ({"severities": ["bad"]}, "severities"),
    ],
)
def test_a_route_of_what_is_not_there_is_refused(given, field):
    a_pool(a_cluster("eu-1"), "h200")
    row = {"name": "pages", "channels": [], "places": ["eu-1/h200"], "kinds": ["plan"], "severities": ["critical"]}

    with pytest.raises(BadRoute) as refused:
        put_route(None, **row | given, **BY)

    assert refused.value.field == field


def test_a_route_that_changed_since_it_was_read_is_refused():
    route = a_route("pages")
    was = mark_of_route(route)
    put_route(route, "pages", channels=[], severities=["critical"], was=was, **BY)

    with pytest.raises(LostRace):
        put_route(route, "pages", channels=[], severities=["note"], was=was, **BY)
