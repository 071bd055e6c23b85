"""The pages of notifications: what they show, to whom, and what they say on empty tables."""

import pytest

from notifications.models import Channel, Delivery, Route
from tests.make import a_cluster, a_finding, a_user
from tests.notifications.make import a_channel, catch_all, happened
from tests.pages import visiting, wrong_beside

pytestmark = pytest.mark.django_db


@pytest.fixture
def root():
    return visiting(a_user("root", role="admin"))


@pytest.fixture
def viewer():
    return visiting(a_user("vera", role="viewer"))


def test_an_empty_page_says_what_to_do(root):
    html = root.get("/notifications").content.decode()

    assert "No channels: nobody is notified." in html
    assert "Nothing was sent yet." in html
    assert "QUARTERDECK_PUBLIC_URL" in html


def test_a_channel_is_added_tested_and_put_into_the_last_route(root):
    form = {"kind": "slack", "name": "chat", "secret_from": "env:QUARTERDECK_CHANNEL_CHAT", "is_on": "on"}

    added = root.post("/notifications/channels/add?kind=slack", form)
    channel = Channel.objects.get()
    tested = root.post(f"/notifications/channels/{channel.pk}/tests", follow=True)
    root.post(f"/notifications/routes/{Route.catch_all().pk}", {"channels": ["chat"]})

    assert added.headers["location"] == f"/notifications/channels/{channel.pk}"
    assert "Waits for a worker" in tested.content.decode()
    assert list(Route.catch_all().channels.all()) == [channel]


def test_what_is_wrong_is_said_beside_its_field(root):
    given = {"kind": "slack", "name": "chat", "secret_from": "hooks.slack.com/services/T/B/x"}

    html = root.post("/notifications/channels/add?kind=slack", given)

    assert html.status_code == 400
    assert "never the secret itself" in wrong_beside(html.content.decode(), "id_secret_from")


def test_a_viewer_sees_states_and_no_place_of_a_secret(viewer):
    channel = a_channel("chat", "slack", secret_from="env:QUARTERDECK_CHANNEL_CHAT")

    seen = [viewer.get(path).content.decode() for path in ("/notifications", f"/notifications/channels/{channel.pk}")]

    assert "chat" in seen[0]
    assert not any("QUARTERDECK_CHANNEL_CHAT" in html for html in seen)
    assert viewer.post(f"/notifications/channels/{channel.pk}/tests").status_code == 403
    assert viewer.get("/notifications/channels/add").status_code == 403


def test_who_sees_a_part_of_the_fleet_is_refused_in_a_sentence(db):
    client = visiting(a_user("eve", role="viewer", on=a_cluster("eu-1")))

    assert "on the fleet" in client.get("/notifications").content.decode()
    assert client.get("/notifications").status_code == 403


def test_who_would_get_this(root):
    a_cluster("eu-1")
    catch_all(a_channel("chat", "slack"))

    html = root.get("/notifications", {"where": "eu-1", "severity": "critical", "kind": "plan"}).content.decode()

    assert "Route “Everything else”: chat." in html


def test_the_log_shows_the_message_and_lets_it_be_sent_again(root, route_and_send, monkeypatch):
    catch_all(a_channel("chat", "slack", secret_from="env:QUARTERDECK_CHANNEL_CHAT"))
    happened(a_finding(a_cluster("eu-1"), title="It fell off the bus."))
    route_and_send()
    row = Delivery.objects.get()

    shown = root.get(f"/notifications/deliveries/{row.pk}").content.decode()

    assert "It fell off the bus." in shown
    assert "This place has no secret for this channel" in shown

    Delivery.objects.update(state="dead")
    root.post(f"/notifications/deliveries/{row.pk}/resends")
    assert Delivery.objects.count() == 2


def test_the_log_costs_no_more_for_more_deliveries(root, queries_of):
    channel = a_channel("chat", "slack")
    catch_all(channel)
    costs = []
    for _ in range(2):
        for _ in range(4):
            root.post(f"/notifications/channels/{channel.pk}/tests")
        costs.append(queries_of(root, "/notifications"))

    assert costs[0] == costs[1]


def test_a_route_is_given_quiet_hours_and_a_second_channel(root):
    a_channel("chat", "slack"), a_channel("pager", "pagerduty")
    path = f"/notifications/routes/{Route.catch_all().pk}"
    form = {
        "channels": ["chat"],
        "escalates_to": "pager",
        "zone": "Europe/Berlin",
        "start": "22:00",
        "days": ["5", "6"],
    }

    missing = root.post(path, form)
    root.post(path, form | {"end": "07:00"})

    assert wrong_beside(missing.content.decode(), "end") == "Quiet hours need it."
    route = Route.catch_all()
    assert (route.escalates_to.name, route.escalates_after_min) == ("pager", 15)
    assert route.quiet_hours.sentence == "quiet 22:00–07:00 Europe/Berlin, Sat, Sun"
    assert "then pager after 15 min" in root.get("/notifications").content.decode()
    assert 'value="22:00"' in root.get(path).content.decode()


def test_who_would_get_this_at_night(root):
    a_cluster("eu-1")
    quiet = {"zone": "UTC", "start": "22:00", "end": "07:00", "days": [0], "holds_criticals": False}
    catch_all(a_channel("chat", "slack"), quiet=quiet)

    html = root.get("/notifications?where=eu-1&severity=warning&kind=plan&at=2026-11-24T02:00").content.decode()

    assert "Held back by quiet hours; in a digest at 2026-11-24 07:00 UTC." in html
    assert 'value="2026-11-24T02:00"' in html
