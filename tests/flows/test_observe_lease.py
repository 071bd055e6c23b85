"""A whole lease against a real API server over HTTP: taken, held, handed on."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.messages import announce, listeners, wake
from fleet.models import Bookmark, Cluster, Node, NodeEvent, Observer
from fleet.observer.lease import list_watch, watch_lease
from fleet.observer.lease.watch_lease import take_lease
from fleet.observer.mirror import memory
from fleet.observer.watches import reflector
from kube import client
from tests.api_server import ApiServer, an_api_server
from tests.fleet.documents import GPU_LABELS, node_document
from tests.flows.leases import hold_a_lease
from tests.flows.light import eventually

pytestmark = [pytest.mark.observe, pytest.mark.django_db(transaction=True)]
HOLD = {"metadata": {"labels": {"nvidia.com/gpu-driver-upgrade.skip": "true"}}}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with an_api_server(tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_lease, "ASK_AGAIN_S", 0.1)
    monkeypatch.setattr(reflector, "LONGEST_WAIT_S", 0.2)
    monkeypatch.setattr(list_watch, "LOOK_UP_S", 0.1)


@pytest.fixture(autouse=True)
def woken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Every lease that was offered, instead of a broker."""
    offered: list[tuple[int, int]] = []
    monkeypatch.setattr(wake, "wake_observer", lambda cluster_id, number: offered.append((cluster_id, number)))
    monkeypatch.setattr(wake, "wake_observer_after", lambda _, cluster_id, number: offered.append((cluster_id, number)))
    return offered


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Every announcement, instead of a channel layer."""
    messages: list[dict] = []
    monkeypatch.setattr(announce, "send", lambda _, message: messages.append(message))
    monkeypatch.setattr(listeners, "notify", lambda *_: None)
    return messages


@pytest.fixture
def cluster(db: None, api: ApiServer, told: list) -> Iterator[Cluster]:
    uid = client.kube_system_uid(client.connect(api.kubeconfig, api.context))
    row = Cluster.objects.create(
        name="north", uid=uid, kubeconfig=api.kubeconfig, context=api.context, added_at=timezone.now()
    )
    Observer.objects.create(cluster=row, lease_until=timezone.now() - timedelta(seconds=1))
    api.create("/api/v1/nodes", bare(node_document("gpu-001")))
    yield row
    api.recover()
    for node in api.get("/api/v1/nodes")["items"]:
        api.delete(f"/api/v1/nodes/{node['metadata']['name']}")


def names() -> list[str]:
    return [node.name for node in Node.objects.all()]


def is_held() -> bool:
    return Node.objects.get(name="gpu-001").is_held


def bare(document: dict) -> dict:
    """As a person writes it: what the server gives is left out."""
    return document | {"metadata": {"name": document["metadata"]["name"], "labels": document["metadata"]["labels"]}}


def test_a_lease_mirrors_the_cluster_and_offers_the_next(cluster, woken):
    hold_a_lease(cluster)

    states = dict(Bookmark.objects.values_list("kind", "state"))
    assert Node.objects.get().name == "gpu-001"
    assert (states["nodes"], states["nvidiadrivers.nvidia.com"]) == ("watching", "absent")
    assert woken == [(cluster.pk, 1)]
    assert Observer.objects.get().lease_until < timezone.now()


def test_a_change_appears_while_the_lease_lasts(cluster, api, told):
    hold_a_lease(cluster, lambda: api.change("/api/v1/nodes/gpu-001", HOLD), until=is_held)

    assert Node.objects.get().is_held
    assert any("nodes" in message["kinds"] for message in told[1:])


def test_what_changed_between_two_leases_is_told_once(cluster, api):
    hold_a_lease(cluster)
    api.change("/api/v1/nodes/gpu-001", HOLD)
    api.create("/api/v1/nodes", bare(node_document("gpu-002")))

    hold_a_lease(cluster, until=lambda: Node.objects.count() == 2 and Node.objects.get(name="gpu-001").is_held)
    hold_a_lease(cluster)

    assert set(Node.objects.values_list("name", "is_held")) == {("gpu-001", True), ("gpu-002", False)}
    assert NodeEvent.objects.filter(kind="label").count() == 1


def test_the_next_lease_goes_on_from_the_bookmarks(cluster, api):
    hold_a_lease(cluster)
    before = len(api.requests())

    hold_a_lease(cluster)

    lists = [one for one in api.requests()[before:] if one["verb"] == "list" and one["path"] == "/api/v1/nodes"]
    assert lists == []


def test_a_past_that_the_server_forgot_is_listed_again(cluster, api):
    hold_a_lease(cluster)
    api.create("/api/v1/nodes", bare(node_document("gpu-002")))
    api.delete("/api/v1/nodes/gpu-001")
    api.suffer("expire")

    hold_a_lease(cluster, until=lambda: names() == ["gpu-002"])

    assert [node.name for node in Node.objects.all()] == ["gpu-002"]


def test_a_watch_that_is_told_to_start_again_does(cluster, api):
    hold_a_lease(
        cluster,
        lambda: api.suffer("expire"),
        lambda: api.change("/api/v1/nodes/gpu-001", HOLD),
        until=lambda: is_held() and Bookmark.objects.get(kind="nodes").state == "watching",
    )

    assert Node.objects.get().is_held
    assert Bookmark.objects.get(kind="nodes").state == "watching"


def test_a_worker_that_dies_leaves_nothing_undone_and_nothing_doubled(cluster, api):
    hold_a_lease(cluster)
    Observer.objects.update(epoch=40, lease_until=timezone.now() - timedelta(seconds=1))  # it never handed on
    memory.recall(cluster.pk, epoch=0)  # and took what it knew with it
    api.change("/api/v1/nodes/gpu-001", HOLD)

    hold_a_lease(cluster, until=is_held)
    hold_a_lease(cluster)

    assert Node.objects.get().is_held
    assert [event.kind for event in NodeEvent.objects.order_by("pk")] == ["ready", "label"]


def test_a_duplicate_message_dies_at_the_door(cluster, woken):
    hold_a_lease(cluster)

    take_lease(cluster.pk, 0, seconds=30)

    assert woken == [(cluster.pk, 1)]
    assert Observer.objects.get().epoch == 1


def test_a_lease_that_somebody_holds_is_not_taken(cluster, woken):
    Observer.objects.update(lease_until=timezone.now() + timedelta(seconds=20))

    take_lease(cluster.pk, 0, seconds=30)

    assert (woken, Observer.objects.get().epoch) == ([], 0)


def test_an_outage_marks_the_bookmarks_and_not_the_nodes(cluster, api):
    hold_a_lease(cluster)
    last_seen_at = Bookmark.objects.get(kind="nodes").last_seen_at

    api.suffer("outage", seconds=10)
    hold_a_lease(cluster, until=lambda: Bookmark.objects.get(kind="nodes").state == "failing")
    during = Bookmark.objects.get(kind="nodes")
    nodes = set(Node.objects.values_list("is_ready", flat=True))

    assert (during.state, during.last_seen_at, nodes) == ("failing", last_seen_at, {True})
    assert any(words in during.message for words in ("did not answer", "refused", "closed"))


def test_a_lease_outlasts_an_outage(cluster, api):
    hold_a_lease(
        cluster,
        lambda: api.suffer("outage", seconds=1),
        api.recover,
        lambda: api.change("/api/v1/nodes/gpu-001", HOLD),
        until=lambda: is_held() and Bookmark.objects.get(kind="nodes").state == "watching",
    )

    assert Node.objects.get().is_held
    assert Bookmark.objects.get(kind="nodes").state == "watching"


def test_a_server_that_fails_now_and_then_is_asked_again(cluster, api):
    api.suffer("errors", code=500, share=0.5)

    # By chance a whole lease hears nothing: then its slot goes to others.
    eventually(lambda: Node.objects.exists() or hold_a_lease(cluster, until=Node.objects.exists))

    assert Node.objects.get().name == "gpu-001"


def test_another_cluster_at_the_same_address_is_not_taken_over(cluster):
    Cluster.objects.update(uid="uid-of-the-one-we-know")

    hold_a_lease(cluster, until=Bookmark.objects.filter(kind="nodes", state="failing").exists)

    bookmark = Bookmark.objects.get(kind="nodes")
    assert Node.objects.count() == 0
    assert bookmark.state == "failing"
    assert "is another cluster: its kube-system has the UID" in bookmark.message


def test_a_stop_ends_a_lease(cluster, woken):
    hold_a_lease(cluster)  # a lease of minutes, which is told to stop as soon as it watches

    assert woken == [(cluster.pk, 1)]


def test_a_bug_of_ours_ends_the_lease_and_keeps_what_was_written(cluster, api, monkeypatch):
    hold_a_lease(cluster)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("fleet.observer.watches.delta_queue.fingerprint", broken)
    with pytest.raises(ZeroDivisionError):
        hold_a_lease(cluster, lambda: api.change("/api/v1/nodes/gpu-001", HOLD), until=lambda: False)

    monkeypatch.undo()
    assert Node.objects.get().labels == GPU_LABELS
