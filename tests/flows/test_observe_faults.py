"""One object, one kind, one connection that is bad: it costs itself, and a page says so."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet.freshness.kinds import freshness_of
from fleet.messages import announce, listeners, wake
from fleet.models import Bookmark, Cluster, Node, NodeEvent, Observer, Pod
from fleet.observer.lease import list_watch, watch_lease
from fleet.observer.watches import reflector
from kube.client import watches
from kube.client.server_clock import SLOWEST_S
from tests.fleet.documents import node_document, pod_document
from tests.fleet.light_server import (
    ABSENT,
    DRIVERS,
    FORBIDDEN,
    NODES,
    PODS,
    TOO_LARGE,
    LightServer,
    light_servers,
)
from tests.flows.light import Watched, eventually, watched
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.observe, pytest.mark.django_db(transaction=True)]
DRIVER = b'{"metadata":{"name":"h100","uid":"uid-of-h100"},"spec":{"version":"580.95.05"}}'


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_lease, "ASK_AGAIN_S", 0.1)
    monkeypatch.setattr(reflector, "LONGEST_WAIT_S", 0.2)
    monkeypatch.setattr(reflector, "SHORTEST_WATCH_S", 0.1)
    monkeypatch.setattr(list_watch, "LOOK_UP_S", 0.05)
    monkeypatch.setattr(wake, "wake_observer", lambda *_: None)
    monkeypatch.setattr(wake, "wake_observer_after", lambda *_: None)
    monkeypatch.setattr(listeners, "notify", lambda *_: None)
    monkeypatch.setattr(announce, "send", lambda *_: None)


@pytest.fixture
def server() -> Iterator[LightServer]:
    """With two nodes and a pod."""
    light = LightServer()
    light.objects = {NODES: [a_node("gpu-001"), a_node("gpu-002")], PODS: [json.dumps(pod_document()).encode()]}
    with light_servers(light):
        yield light


@pytest.fixture
def north(db: None, server: LightServer, tmp_path: Path) -> Watched:
    return watched(tmp_path, server)


def a_node(name: str, **given: object) -> bytes:
    return json.dumps(node_document(name, **given)).encode()


def names() -> list[str]:
    return list(Node.objects.order_by("name").values_list("name", flat=True))


def states(kind: str, other: str) -> tuple[str, str]:
    found = dict(Bookmark.objects.values_list("kind", "state"))
    return found[kind], found[other]


UNREAD = {
    "10,000 wrong conditions": {"conditions": [{"type": 7}] * 10_000},
    "wrong types": {"labels": {"a": 7}},
    "labels that are a list": {"labels": ["a"]},
    "no UID that fits": {"uid": "u" * 100},
}
FITTED = {
    "a time out of range": {"created": "9999-12-31T23:59:59-14:00"},
    "a label of 1 MB": {"labels": {"huge": "x" * 1_000_000}},
    "a NUL": {"labels": {"a": "b\0c"}},
    "a number out of range": {"gpus": "9" * 30},
    "10,000 conditions": {"conditions": [{"type": f"C{n}", "status": "Perhaps"} for n in range(10_000)]},
    "no conditions": {"conditions": None},
    "markup": {"labels": {"a": "<script>alert(1)</script>"}},
}
HOSTILE = UNREAD | FITTED


def hostile_node(how: str) -> bytes:
    if how == "half a surrogate":
        return hostile_node("markup").replace(b"<script>", rb"\ud800")
    given = dict(HOSTILE[how])
    document = node_document("hostile", labels=given.get("labels", {}), gpus=given.get("gpus", 8))
    document["metadata"]["uid"] = given.get("uid", "uid-of-hostile")
    document["metadata"]["creationTimestamp"] = given.get("created", "2026-11-21T08:00:00Z")
    document["status"]["conditions"] = given.get("conditions", document["status"]["conditions"])
    return json.dumps(document).encode()


@pytest.mark.parametrize("how", [*UNREAD, "half a surrogate"])
def test_a_hostile_object_in_a_list_costs_only_itself(north, server, how):
    server.objects[NODES].insert(1, hostile_node(how))

    with north.lease():
        eventually(lambda: north.is_listed("pods"))

    assert names() == ["gpu-001", "gpu-002"]
    mark = north.bookmark("nodes")
    assert (mark.state, len(mark.unread)) == ("watching", 1)
    assert next(iter(mark.unread.values()))["reason"]


@pytest.mark.parametrize("how", FITTED)
def test_what_can_be_fitted_is_kept_without_what_cannot(north, server, how):
    server.objects[NODES].insert(1, hostile_node(how))

    with north.lease():
        eventually(lambda: north.is_listed("pods"))

    assert names() == ["gpu-001", "gpu-002", "hostile"]
    row = json.dumps(list(Node.objects.filter(name="hostile").values()), default=str)
    assert len(row) < 10_000
    assert "\\u0000" not in row
    assert north.bookmark("nodes").unread == {}


@pytest.mark.parametrize("how", [how for how in UNREAD if how != "no UID that fits"])
def test_a_hostile_change_keeps_the_row_as_it_was(north, server, how):
    server.objects[NODES].append(a_node("hostile"))

    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        for _ in range(3):
            server.send(NODES, b'{"type":"MODIFIED","object":' + hostile_node(how) + b"}")
        server.changes(NODES, node_document("gpu-003"), what="ADDED")
        eventually(lambda: "gpu-003" in names())
        eventually(lambda: north.bookmark("nodes").unread)
        lists = [one for one in server.asked if one.startswith(f"{NODES}?limit")]

    assert names() == ["gpu-001", "gpu-002", "gpu-003", "hostile"]
    assert len(lists) == 1


def test_what_can_be_read_again_is_no_longer_told(north, server):
    server.objects[NODES].append(hostile_node("wrong types"))

    with north.lease():
        eventually(lambda: north.is_listed() and north.bookmark("nodes").unread)
        server.changes(NODES, node_document("hostile"))
        eventually(lambda: not north.bookmark("nodes").unread)

    assert "hostile" in names()


def test_what_cannot_be_read_is_told_once_though_it_is_sent_again_and_again(north, server, caplog):
    server.objects[NODES].append(hostile_node("wrong types"))

    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        for _ in range(5):
            server.send(NODES, b'{"type":"MODIFIED","object":' + hostile_node("wrong types") + b"}")
        server.changes(NODES, node_document("gpu-003"), what="ADDED")
        eventually(lambda: "gpu-003" in names())

    assert caplog.text.count("an object cannot be read") == 1


def test_an_object_that_is_unread_is_still_there(north, server):
    with north.lease():
        eventually(lambda: north.is_listed("pods"))
    server.objects[NODES][1] = a_node("gpu-002", labels={"a": 7})
    Bookmark.objects.update(resource_version="")  # listed again

    with north.lease():
        eventually(lambda: north.bookmark("nodes").unread)
        eventually(lambda: north.bookmark("nodes").state == "watching")

    assert names() == ["gpu-001", "gpu-002"]
    assert not NodeEvent.objects.filter(sentence__contains="left").exists()


def test_two_nodes_that_swap_their_names_keep_their_rows(north, server):
    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        server.changes(NODES, node_document("gpu-002", uid="uid-of-gpu-001"))
        server.changes(NODES, node_document("gpu-001", uid="uid-of-gpu-002"))
        eventually(lambda: Node.objects.get(uid="uid-of-gpu-001").name == "gpu-002")

    assert Node.objects.get(uid="uid-of-gpu-002").name == "gpu-001"
    assert Node.objects.count() == 2


@pytest.mark.parametrize(
    "line",
    [b"{", b'{"type":"EXPLODED","object":{}}', b"\xff\xfe", b'{"type":"MODIFIED"}', b"[" * 5000, b'"\\ud800"'],
)
def test_an_event_that_is_none_makes_its_kind_begin_again_and_no_other(north, server, line):
    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        server.objects[NODES].append(a_node("gpu-003"))
        server.send(NODES, line)
        eventually(lambda: "gpu-003" in names())
        pods = [one for one in server.asked if one.startswith(f"{PODS}?limit")]

    assert len(pods) == 1
    assert north.bookmark("nodes").state == "watching"


def test_a_kind_we_may_not_see_says_which_rule_is_missing_and_the_others_are_live(north, server):
    server.refusals[PODS] = FORBIDDEN

    with north.lease():
        eventually(lambda: north.is_listed() and north.bookmark("pods").state == "forbidden")

    assert states("nodes", "pods") == ("watching", "forbidden")
    assert "cannot list resource" in north.bookmark("pods").message


def test_a_slow_list_makes_nobody_else_wait(north, server):
    server.delays_s[PODS] = 3.0

    with north.lease():
        eventually(lambda: north.is_listed() and server.watches(NODES))
        server.changes(NODES, node_document("gpu-003"), what="ADDED")
        eventually(lambda: "gpu-003" in names())
        during = north.bookmark("pods").state
        eventually(lambda: north.is_listed("pods"))

    assert (during, Pod.objects.count()) == ("listing", 1)


def test_a_list_that_outlasts_its_lease_is_not_thrown_away(north, server):
    server.delays_s[PODS] = 8.0

    with north.lease(seconds=4.0) as thread:
        thread.join(PATIENCE_S)

    assert (north.is_listed("pods"), Pod.objects.count()) == (True, 1)
    assert len([one for one in server.asked if one.startswith(f"{PODS}?limit")]) == 1


def test_pods_that_wait_for_nodes_say_so(north, server, monkeypatch):
    monkeypatch.setattr(reflector, "TIMEOUT_S", 0.2)
    server.delays_s[NODES] = 2.0

    with north.lease():
        waiting = Bookmark.objects.filter(kind="pods", message__contains="Waits for the list of nodes")
        eventually(waiting.exists)
        eventually(lambda: north.is_listed("pods"))

    assert north.bookmark("pods").message == ""


def test_a_kind_that_is_uninstalled_has_no_rows_and_is_found_again(north, server):
    server.objects[DRIVERS] = [DRIVER]
    with north.lease():
        eventually(lambda: north.cluster.driver_objects.exists())
        server.refusals[DRIVERS] = ABSENT
        server.drop()
        eventually(lambda: north.bookmark("nvidiadrivers.nvidia.com").state == "absent")
        eventually(lambda: not north.cluster.driver_objects.exists())
        eventually(lambda: north.bookmark("nodes").state == "watching")

    del server.refusals[DRIVERS]
    with north.lease():
        eventually(lambda: north.cluster.driver_objects.exists())

    assert north.bookmark("nvidiadrivers.nvidia.com").state == "watching"


def test_a_connection_that_stands_and_is_silent_is_stale_in_time_and_recovers(north, server, monkeypatch):
    monkeypatch.setattr(watches, "SILENT_S", 0.6)
    monkeypatch.setattr(watches, "OPEN_S", 0.4)

    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        server.silent.add(NODES)
        eventually(lambda: north.bookmark("nodes").state == "failing")
        message = north.bookmark("nodes").message
        others = north.bookmark("pods").state
        server.silent.clear()
        eventually(lambda: north.bookmark("nodes").state == "watching")

    assert ("sent nothing about nodes" in message or "did not answer" in message, others) == (True, "watching")


def test_a_watch_that_trickles_and_never_ends_a_line_is_given_up(north, server, monkeypatch):
    monkeypatch.setattr(watches, "SILENT_S", 0.5)

    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        server.trickling.add(NODES)
        eventually(lambda: "no complete event" in north.bookmark("nodes").message)

    assert north.bookmark("pods").state == "watching"


def test_a_list_that_expires_again_and_again_deletes_nothing_and_says_so(north, server):
    with north.lease():
        eventually(lambda: north.is_listed("pods"))
    server.page_size, server.expiring[NODES] = 1, 4
    Bookmark.objects.update(resource_version="")

    with north.lease():
        eventually(lambda: "expired before its last page was read" in north.bookmark("nodes").message)
        during = names()
        eventually(lambda: north.bookmark("nodes").state == "watching" and not server.expiring[NODES])
        eventually(lambda: north.bookmark("pods").state == "watching")

    assert (during, names()) == (["gpu-001", "gpu-002"], ["gpu-001", "gpu-002"])


def test_one_that_expired_is_asked_for_in_bigger_pages(north, server):
    server.objects[NODES] = [a_node(f"gpu-{number:03}") for number in range(600)]
    server.expiring[NODES] = 1

    with north.lease():
        eventually(lambda: Node.objects.count() == 600)

    limits = [one for one in server.asked if one.startswith(f"{NODES}?limit")]
    assert limits == [f"{NODES}?limit=500", f"{NODES}?limit=500&continue=500", f"{NODES}?limit=2000"]


def test_data_restored_from_a_backup_are_listed_again(north, server):
    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        server.objects[NODES].pop()
        server.watch_refusals[NODES] = TOO_LARGE
        server.drop()
        eventually(lambda: names() == ["gpu-001"])
        server.watch_refusals.clear()
        eventually(lambda: north.bookmark("nodes").state == "watching")

    assert north.cluster.foreign_uid == ""


def test_another_cluster_that_comes_in_during_a_lease_is_refused_and_named(north, server):
    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        server.uid, server.objects = "uid-of-another", {NODES: [a_node("foreign")]}
        server.version = 5
        server.drop()
        eventually(lambda: Cluster.objects.get().foreign_uid == "uid-of-another")
        eventually(lambda: north.bookmark("nodes").state == "failing")
    during = names(), north.bookmark("nodes").message
    server.uid, server.objects = "uid-of-light", {NODES: [a_node("gpu-001"), a_node("gpu-002")]}
    with north.lease():
        eventually(lambda: Cluster.objects.get().foreign_uid == "")
        eventually(lambda: north.bookmark("nodes").state == "watching")

    assert during[0] == ["gpu-001", "gpu-002"]
    assert "is another cluster: its kube-system has the UID uid-of-another" in during[1]
    assert "accept the new cluster" in during[1]


def test_one_that_was_accepted_begins_anew_and_keeps_its_timeline(north, server):
    from fleet.clusters.acceptance import accept

    with north.lease():
        eventually(lambda: north.is_listed("pods"))
    server.uid, server.objects = "uid-of-another", {NODES: [a_node("new-001")]}
    with north.lease():
        eventually(lambda: Cluster.objects.get().foreign_uid)
    cluster = Cluster.objects.get()
    accept(cluster, uid="uid-of-another", actor="ada", reason="Rebuilt.", now=cluster.added_at)

    with north.lease():
        eventually(lambda: north.is_listed("pods"))

    assert (names(), Pod.objects.count()) == (["new-001"], 0)
    assert NodeEvent.objects.filter(node_name="gpu-001").exists()
    assert not NodeEvent.objects.filter(sentence__contains="left").exists()


def test_a_clock_that_differs_is_measured_and_freshness_is_by_ours(north, server):
    server.clock_ahead_s = 185

    with north.lease():
        eventually(lambda: north.is_listed("pods"))

    # What an answer says is as wide as it was slow, and a second: its middle is off by half of that at most.
    assert abs(Observer.objects.get().clock_skew_s - 185) <= (SLOWEST_S + 1) / 2 + 0.1
    fresh = freshness_of(north.bookmark("nodes"), now=north.bookmark("nodes").last_seen_at)
    assert (fresh.state, fresh.age_s) == ("live", 0.0)


def test_a_rotated_cluster_secret_is_used_in_the_next_lease(north, server, tmp_path):
    (tmp_path / "server").write_text(f"http://127.0.0.1:{server.port}")
    (tmp_path / "config").write_text('{"bearerToken": "first"}')
    Cluster.objects.update(kubeconfig=str(tmp_path), context="")
    server.token = "first"
    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        server.token = "second"
        server.drop()
        eventually(lambda: north.bookmark("nodes").state == "failing")
        message = north.bookmark("nodes").message

    (tmp_path / "config").write_text('{"bearerToken": "second"}')

    with north.lease():
        eventually(lambda: north.bookmark("nodes").state == "watching")
    assert "credentials" in message
    assert names() == ["gpu-001", "gpu-002"]


def test_a_server_that_never_answers_does_not_keep_a_worker_from_stopping(north, server):
    server.hangs = True

    stop = threading.Event()
    with north.lease(seconds=3600.0, stop=stop) as thread:
        eventually(lambda: server.asked)
        stop.set()
        thread.join(PATIENCE_S)

        assert not thread.is_alive()


def test_a_database_that_is_slow_is_said_to_be_and_forgiven(north, server, monkeypatch):
    from fleet.freshness import lag
    from fleet.observer.persistence import flusher

    monkeypatch.setattr(lag, "LATE_MS", 1000)
    monkeypatch.setattr(lag, "LATE_FOR", lag.timedelta(seconds=0.5))
    monkeypatch.setattr(list_watch, "TICK_S", 0.5)
    slow, real = threading.Event(), flusher.write

    def slowly(*args, **given):
        if slow.is_set():
            time.sleep(1.5)
        return real(*args, **given)

    monkeypatch.setattr(flusher, "write", slowly)
    with north.lease():
        eventually(lambda: north.is_listed("pods") and server.watches(NODES))
        slow.set()
        for step in range(8):
            server.changes(NODES, node_document("gpu-001", labels={"step": str(step)}))
            time.sleep(0.3)
        eventually(lambda: Observer.objects.filter(behind_since__isnull=False, lag_ms__gt=1000).exists())
        slow.clear()
        eventually(lambda: Observer.objects.get().behind_since is None)
