"""A person's own e-mail and chat handles."""

import pytest

from notifications.models import Channel, Delivery
from notifications.models.router import KEY
from notifications.rounds.router_round import run_router
from people.models import AuditEntry
from tests.callers import calling
from tests.make import NOON, a_cluster, a_finding, a_node, a_pool, a_user
from tests.notifications.make import a_channel, catch_all, happened
from tests.pages import visiting, wrong_beside

pytestmark = pytest.mark.django_db
PATH = "/api/v1/me/notifications"
WANTED = {"severities": ["critical"], "mail": "ada@example.org"}


@pytest.fixture
def cluster():
    return a_cluster("eu-1")


@pytest.fixture
def ada(cluster):
    return calling(a_user("ada", role="viewer", on=a_pool(cluster, "h200")))


def recipients() -> list[list[str]]:
    return [delivery.channel.recipients for delivery in Delivery.objects.order_by("pk")]


def test_e_mail_comes_for_wanted_events_of_places_that_the_person_sees(ada, cluster, clock):
    assert ada.put(PATH, WANTED, format="json").status_code == 200
    node = a_node(cluster, "gpu-1", pool=cluster.pools.get())
    for finding in (
        a_finding(cluster, node=node, severity="critical"),
        a_finding(cluster, "other", node=node, severity="warning"),
        a_finding(cluster, node=a_node(cluster, "gpu-2"), severity="critical"),  # of no pool of hers
    ):
        happened(finding)

    run_router(KEY, owner="worker-1", clock=clock)

    assert recipients() == [["ada@example.org"]]


@pytest.mark.parametrize("change", [{"severities": []}, {"kinds": ["node-not-ready"]}])
def test_none_comes_that_is_not_wanted(change, ada, cluster, clock):
    ada.put(PATH, WANTED, format="json")
    ada.put(PATH, WANTED | change, format="json")
    node = a_node(cluster, "gpu-1", pool=cluster.pools.get())
    happened(a_finding(cluster, node=node, rule="gpu-hot", severity="critical"))

    run_router(KEY, owner="worker-1", clock=clock)

    assert recipients() == []


def test_none_comes_to_whoever_has_left(ada, cluster, clock):
    ada.put(PATH, WANTED, format="json")
    ada.user.is_active = False
    ada.user.save()
    happened(a_finding(cluster, node=a_node(cluster, pool=cluster.pools.get()), severity="critical"))

    run_router(KEY, owner="worker-1", clock=clock)

    assert recipients() == []


def test_a_message_mentions_the_assignee(ada, cluster, clock):
    catch_all(a_channel("chat", "slack"))
    ada.put(PATH, {"severities": [], "slack_id": "U0123456789", "teams_id": "ada@example.org"}, format="json")
    happened(a_finding(cluster, assigned_to="ada"))

    run_router(KEY, owner="worker-1", clock=clock)

    mention = {"name": "ada", "slack": "U0123456789", "teams": "ada@example.org"}
    assert Delivery.objects.get().message["mentions"] == [mention]


def test_the_channel_of_a_person_is_in_no_list_and_no_route(ada, cluster):
    ada.put(PATH, WANTED, format="json")
    root = calling(a_user("root", role="admin"))
    channel = Channel.objects.get()

    assert root.get("/api/v1/notification-channels").data["results"] == []
    assert root.get(f"/api/v1/notification-channels/{channel.pk}").status_code == 404
    body = {"name": "x", "channels": [channel.name]}
    assert root.post("/api/v1/notification-routes", body, format="json").status_code == 400


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"mail": ""}, "mail"), ({"mail": "ada"}, "mail"), ({"slack_id": "@ada"}, "slack_id"),
        ({"teams_id": "Ada"}, "teams_id"), ({"kinds": ["no-rule"]}, "kinds"), ({"severities": ["bad"]}, "severities"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_its_field(wrong, field, ada):
    answer = ada.put(PATH, WANTED | wrong, format="json")

    assert answer.status_code == 400
    assert field in str(answer.data["errors"])


def test_the_page_saves_the_same(ada):
    visitor = visiting(ada.user)
    assert "My notifications" in visitor.get("/account").content.decode()

    refused = visitor.post("/account/notifications", {"severities": ["critical"]})
    saved = visitor.post(
        "/account/notifications", WANTED | {"slack_id": "U0123456789", "zone": "Europe/Berlin"}, follow=True
    )

    assert wrong_beside(refused.content.decode(), "mail") == "Give the address to which e-mail is sent."
    assert "Your notifications are saved." in saved.content.decode()
    preferences = ada.get(PATH).data
    del preferences["mark"]
    assert preferences == {
        "severities": ["critical"], "kinds": [], "mail": "ada@example.org", "slack_id": "U0123456789", "teams_id": "",
        "zone": "Europe/Berlin",
    }  # fmt: skip
    assert Channel.objects.get().added_at > NOON


def test_a_change_is_a_decision_without_the_address_and_the_same_again_is_none(ada):
    for _ in range(2):
        ada.put(PATH, WANTED, format="json")
    ada.put(PATH, WANTED | {"severities": []}, format="json")

    first, second = AuditEntry.objects.filter(verb="person.preferences").order_by("pk")
    assert (first.actor, first.subject) == ("ada", f"person:{ada.user.pk}")
    assert first.evidence["changed"] == ["mail", "severities"]
    assert (second.evidence["changed"], second.evidence["severities"]) == (["severities"], [])
    assert "example.org" not in str(first.evidence)
