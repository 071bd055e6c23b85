"""REST of notifications: who may, what is shown, and what is refused."""

import pytest

from notifications.models import Channel, Delivery, Route
from tests.callers import calling
from tests.make import NOON, a_cluster, a_finding, a_pool, a_user, an_event_of
from tests.notifications.make import a_channel, a_route, catch_all

BASE = "/api/v1"
PAGER = {"name": "pager", "kind": "pagerduty", "secret_from": "env:QUARTERDECK_CHANNEL_KEY"}


@pytest.fixture
def root(db):
    return calling(a_user("root", role="admin"))


@pytest.fixture
def viewer(db):
    return calling(a_user("vera", role="viewer"))


def test_an_admin_adds_changes_tests_and_removes_a_channel(root):
    made = root.post(f"{BASE}/notification-channels", PAGER, format="json")
    assert (made.status_code, made.data["state"]) == (201, "unused")
    path = f"{BASE}/notification-channels/{made.data['id']}"

    tested = root.post(f"{path}/tests")
    changed = root.patch(path, {"is_on": False, "was": made.data["mark"]}, format="json")
    late = root.patch(path, {"is_on": True, "was": made.data["mark"]}, format="json")
    gone = root.delete(path)

    assert (tested.status_code, tested.data["act"], tested.data["state"]) == (202, "test", "waiting")
    assert (changed.data["state"], late.status_code, gone.status_code) == ("off", 409, 204)
    assert root.get(f"{BASE}/notification-deliveries/{tested.data['id']}").data["state"] == "dead"


def test_a_repeated_key_adds_one_channel(root):
    given = {"format": "json", "headers": {"Idempotency-Key": "k1"}}

    answers = [root.post(f"{BASE}/notification-channels", PAGER, **given) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert Channel.objects.count() == 1


def test_deliveries_name_their_event_as_the_page_of_events_does(root):
    event, other = (an_event_of(a_finding(a_cluster(name))) for name in ("one", "two"))
    row = {"channel": a_channel(), "key": "finding/1", "act": "open", "message": {"title": "t", "severity": "note"}}
    sent, *_ = [
        Delivery.objects.create(**row, event=about, created_at=NOON, next_try_at=NOON) for about in (event, other, None)
    ]

    found = root.get(f"{BASE}/notification-deliveries", {"event": event.pk}).data["results"]

    assert [(one["id"], one["event"]) for one in found] == [(sent.pk, event.pk)]


def test_a_viewer_of_the_fleet_sees_no_place_of_a_secret_and_changes_nothing(viewer):
    channel = a_channel(secret_from="env:QUARTERDECK_CHANNEL_KEY")
    a_route("pages", channel)

    (seen,) = viewer.get(f"{BASE}/notification-channels").data["results"]

    assert (seen["secret_from"], seen["mark"], seen["routes"]) == (None, None, ["pages"])
    path = f"{BASE}/notification-channels/{channel.pk}"
    refused = [
        viewer.post(f"{BASE}/notification-channels", PAGER, format="json"),
        viewer.patch(path, {"is_on": False}, format="json"),
        viewer.delete(path),
        viewer.post(f"{path}/tests"),
        viewer.post(f"{BASE}/notification-routes", {"name": "mine"}, format="json"),
    ]
    assert {answer.status_code for answer in refused} == {403}


@pytest.mark.parametrize("list_of", ["channels", "routes", "deliveries"])
def test_who_sees_a_part_of_the_fleet_sees_none_of_it(list_of, db):
    caller = calling(a_user("eve", role="admin", on=a_cluster("eu-1")))

    assert caller.get(f"{BASE}/notification-{list_of}").status_code == 403


def test_routes_are_listed_in_order_with_the_last_one_at_the_end(root):
    a_channel("chat", "slack")
    a_pool(a_cluster("eu-1"), "h200")
    body = {"name": "pages", "severities": ["critical"], "places": ["eu-1/h200"], "channels": ["chat"]}

    made = root.post(f"{BASE}/notification-routes", body, format="json")
    root.post(f"{BASE}/notification-routes", {"name": "second"}, format="json")
    root.post(f"{BASE}/notification-routes/{made.data['id']}/moves", {"up": False}, format="json")

    rows = root.get(f"{BASE}/notification-routes").data["results"]
    assert [row["name"] for row in rows] == ["second", "pages", "Everything else"]
    assert (rows[1]["channels"], rows[2]["is_catch_all"]) == (["chat"], True)


def test_who_would_get_this_is_answered_without_sending(root):
    pool = a_pool(a_cluster("eu-1"), "h200", workload_class="training")
    a_route("training", a_channel("pager", "slack"), workload_classes=["training"])
    catch_all()

    def ask(where: str):
        body = {"where": where, "severity": "critical", "kind": "gpu-xid"}
        return root.post(f"{BASE}/notification-recipients", body, format="json")

    assert ask(f"eu-1/{pool.name}").data["channels"] == ["pager"]
    assert ask("eu-1").data["sentence"].startswith("Nobody: route “Everything else”")
    assert ask("eu-9").status_code == 400
    assert not Delivery.objects.exists()


def test_the_log_is_filtered_by_state_and_channel(root):
    for name in ("one", "two"):
        channel = a_channel(name, "slack")
        root.post(f"{BASE}/notification-channels/{channel.pk}/tests")

    listed = root.get(f"{BASE}/notification-deliveries", {"channel": "two", "state": "waiting"}).data

    assert [row["channel"] for row in listed["results"]] == ["two"]
    assert root.get(f"{BASE}/notification-deliveries", {"sate": "waiting"}).status_code == 400


def test_who_would_get_this_at_night_names_the_digest_and_the_second_channel(root):
    cluster, chat, pager = a_cluster("eu-1"), a_channel("chat", "slack"), a_channel("pager", "pagerduty")
    quiet = {"zone": "Europe/Berlin", "start": "22:00", "end": "07:00", "days": [0, 1, 2, 3, 4]}
    body = {"name": "x", "channels": [chat.name], "escalates_to": pager.name, "escalates_after_min": 20, "quiet": quiet}
    last = Route.catch_all()

    saved = root.put(f"{BASE}/notification-routes/{last.pk}", body, format="json")
    asked = {"where": cluster.name, "severity": "warning", "kind": "gpu-xid", "at": "2026-11-24T02:00:00Z"}
    by_night = root.post(f"{BASE}/notification-recipients", asked, format="json").data
    pages = root.post(f"{BASE}/notification-recipients", asked | {"severity": "critical"}, format="json").data

    assert saved.data["quiet"] == quiet | {"holds_criticals": False}
    assert (saved.data["name"], saved.data["escalates_to"]) == ("Everything else", "pager")
    assert by_night["sentence"] == (
        "Route “Everything else”: chat. Held back by quiet hours; in a digest at 2026-11-24 07:00 Europe/Berlin. "
        "Then pager, if it is not delivered, or nobody answers within 20 minutes."
    )
    assert (pages["held_until"], pages["second"]) == (None, "pager")


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"escalates_to": "nobody"}, "escalates_to"),
        ({"escalates_to": "chat"}, "escalates_to"),
        ({"escalates_after_min": 0}, "escalates_after_min"),
        ({"quiet": {"zone": "Mars/Base", "start": "22:00", "end": "07:00", "days": [0]}}, "quiet"),
        ({"quiet": {"zone": "UTC", "start": "00:00", "end": "00:00", "days": [0, 1, 2, 3, 4, 5, 6]}}, "quiet"),
        ({"quiet": {"zone": "UTC", "start": "25:00", "end": "07:00", "days": [0]}}, "quiet"),
    ],
)
def test_a_second_channel_and_quiet_hours_that_cannot_be_are_refused(wrong, field, root):
    a_channel("chat", "slack")

    answer = root.post(f"{BASE}/notification-routes", {"name": "r", "channels": ["chat"]} | wrong, format="json")

    assert answer.status_code == 400
    assert field in str(answer.data["errors"])


def test_a_second_channel_is_not_removed(root):
    pager = a_channel("pager", "pagerduty")
    catch_all(escalates_to=pager)

    answer = root.delete(f"{BASE}/notification-channels/{pager.pk}")

    assert (answer.status_code, Channel.objects.count()) == (409, 1)
