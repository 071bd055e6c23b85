"""From what the reflectors say to rows, bookmarks, numbers and announcements."""

import time
from base64 import b64decode
from dataclasses import replace

import msgspec
import pytest
from django.db import DataError, connection
from django.test.utils import CaptureQueriesContext

from fleet.allocation.gpu_holders import allocations_on
from fleet.map_cells.cell import CRITICAL
from fleet.models import (
    Bookmark,
    BookmarkState,
    DriverObject,
    GoneNode,
    Gpu,
    LostLease,
    Node,
    NodeEvent,
    Observer,
    Operand,
    OperandRevision,
    Pod,
    PodPlacement,
)
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.persistence import batch_write, upsert
from fleet.observer.watches.deltas import Changed, Failed, ListBegun, ListPage, Opened
from fleet.states.node import NodeState
from kube.client.decoder import Unread
from kube.structs import NodeSeen
from tests.fleet.documents import (
    GPU_LABELS,
    a_daemonset_seen,
    a_driver_seen,
    a_node_seen,
    a_pod_seen,
    a_revision_seen,
    node_document,
)
from tests.make import a_device_told, a_pool, a_reading

pytestmark = pytest.mark.sqlite

HELD = GPU_LABELS | {"nvidia.com/gpu-driver-upgrade.skip": "true"}


def test_every_kind_becomes_rows(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.list("daemonsets.apps", [a_daemonset_seen()])
    mirror.list("controllerrevisions.apps", [a_revision_seen()])
    mirror.list("nvidiadrivers.nvidia.com", [a_driver_seen()])
    mirror.list("pods", [a_pod_seen(gpus=2)])

    assert Gpu.objects.filter(node__name="gpu-001").count() == 8
    assert Pod.objects.get().node == Node.objects.get()
    assert (Operand.objects.get().operand, OperandRevision.objects.get().revision) == ("driver", 2)
    assert DriverObject.objects.get().kind == "NVIDIADriver"


def test_a_bookmark_moves_with_the_last_of_its_rows(mirror):
    mirror.record_update(ListBegun("nodes"), ListPage("nodes", (a_node_seen(),), "55", is_last=False))
    mirror.flush()
    unfinished = mirror.bookmark("nodes")

    mirror.later(seconds=3)
    mirror.record_update(ListPage("nodes", (a_node_seen("gpu-002"),), "55", is_last=True))
    mirror.flush()

    assert (unfinished.resource_version, unfinished.state, unfinished.listed_at) == ("", "listing", None)
    done = mirror.bookmark("nodes")
    assert (done.resource_version, done.state) == ("55", "watching")
    assert (mirror.now - done.last_seen_at).total_seconds() == 3  # the rows are as of when the list was asked for


def test_a_heartbeat_writes_nothing_and_is_told_to_nobody(mirror, told, django_assert_num_queries):
    mirror.list("nodes", [a_node_seen(version="1")])
    told.clear()

    mirror.see("nodes", a_node_seen(version="2", heartbeat="2026-11-21T09:00:00Z"))

    assert not mirror.deltas.size
    assert told == []


def test_a_worker_that_starts_again_writes_nothing_twice(mirror, told):
    mirror.list("nodes", [a_node_seen()])
    mirror.begin()
    told.clear()

    mirror.see("nodes", a_node_seen())
    mirror.flush()

    assert NodeEvent.objects.count() == 1
    assert told == []


def test_ten_changes_of_one_node_are_one_row_and_one_announcement(mirror, told):
    mirror.list("nodes", [a_node_seen()])
    told.clear()

    for number in range(10):
        mirror.see("nodes", a_node_seen(labels=GPU_LABELS | {"step": str(number)}))
    mirror.flush()

    assert Node.objects.get().labels["step"] == "9"
    assert len(told) == 1


def test_each_announcement_carries_the_number_of_the_one_before(mirror, told):
    mirror.list("nodes", [a_node_seen(f"gpu-{number}") for number in range(450)])  # several batches
    flusher = mirror.flusher
    mirror.begin()
    mirror.flusher = flusher
    mirror.see("nodes", a_node_seen("gpu-1"))  # a batch of which no row is new
    mirror.flush()

    mirror.see("nodes", a_node_seen("gpu-1", spec={"unschedulable": True}))
    mirror.flush()

    assert told[0]["prev"] == 0
    assert [one["prev"] for one in told[1:]] == [one["seq"] for one in told[:-1]]
    assert [one["seq"] for one in told][-2:] == [5, 7]
    assert Observer.objects.get().batch == 7


def test_an_announcement_names_the_nodes_and_what_they_look_like(mirror, told):
    mirror.list("nodes", [a_node_seen()])
    told.clear()

    mirror.see("nodes", a_node_seen(spec={"unschedulable": True}))
    mirror.flush()

    observer = Observer.objects.get()
    ((key, code, cells),) = told[0]["nodes"]
    assert (key, code) == (Node.objects.get().pk, NodeState.CORDONED)
    assert b64decode(cells) == bytes([NodeState.CORDONED, 8, *[0] * 8])
    assert "index" not in told[0]
    assert (told[0]["kinds"], told[0]["seq"]) == (["nodes"], observer.batch)


def test_a_node_that_is_seen_again_keeps_what_its_findings_say_of_it(mirror, told):
    mirror.list("nodes", [a_node_seen()])
    Node.objects.update(unresolved=2, critical=1)
    told.clear()

    mirror.see("nodes", a_node_seen(spec={"unschedulable": True}))
    mirror.flush()

    node = Node.objects.get()
    ((_, code, cells),) = told[0]["nodes"]
    assert (node.is_unschedulable, node.unresolved, node.critical) == (True, 2, 1)
    assert (code, b64decode(cells)[0]) == (NodeState.HAS_FINDINGS, NodeState.HAS_FINDINGS | CRITICAL)


def test_an_announcement_names_the_node_of_a_pod(mirror, told):
    mirror.list("nodes", [a_node_seen()])
    mirror.list("pods", [])
    told.clear()

    mirror.see("pods", a_pod_seen())
    mirror.flush()

    ((key, code, cells),) = told[0]["nodes"]
    assert (told[0]["kinds"], key, code) == (["pods"], Node.objects.get().pk, NodeState.READY)
    assert b64decode(cells)[2:].count(0x10) == Node.objects.get().gpu_allocated > 0


@pytest.mark.parametrize(
    "change", [{"labels": GPU_LABELS | {"topology.kubernetes.io/zone": "z"}}, {"uid": "another", "name": "gpu-002"}]
)
def test_an_announcement_says_that_the_map_is_laid_out_anew(mirror, told, change):
    mirror.list("nodes", [a_node_seen()])
    told.clear()

    mirror.see("nodes", a_node_seen(**change))
    mirror.flush()

    assert told[0]["index"] is True


def test_an_announcement_says_so_when_a_label_of_a_driver_goes_and_when_it_is_back(mirror, told):
    """What is remembered is the same version all along: the map groups by what is said."""
    mirror.list("nodes", [a_node_seen()])
    silent = {key: value for key, value in GPU_LABELS.items() if "driver" not in key}
    assert silent != GPU_LABELS

    for labels in (silent, GPU_LABELS):
        told.clear()
        mirror.see("nodes", a_node_seen(labels=labels))
        mirror.flush()

        assert told[0]["index"] is True


def test_an_announcement_calls_a_kind_as_pages_do(mirror, told):
    mirror.list("daemonsets.apps", [])
    told.clear()

    mirror.see("daemonsets.apps", a_daemonset_seen())
    mirror.flush()

    assert told[0]["kinds"] == ["daemonsets.apps"]


def test_what_a_whole_list_lacks_is_gone(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001"), a_node_seen("gpu-002")])

    mirror.list("nodes", [a_node_seen("gpu-002")])

    assert [node.name for node in Node.objects.all()] == ["gpu-002"]
    assert NodeEvent.objects.filter(node_name="gpu-001").first().sentence == "The node left the cluster."
    assert (GoneNode.objects.get().name, GoneNode.objects.get().uid) == ("gpu-001", NodeEvent.objects.first().node_uid)


def test_a_node_that_left_keeps_the_pools_it_was_in_also_where_its_labels_were_away(mirror):
    pool = a_pool(mirror.cluster, selector=f"nvidia.com/gpu.product={GPU_LABELS['nvidia.com/gpu.product']}")
    a_pool(mirror.cluster, selector="nvidia.com/gpu.product=another")
    mirror.list("nodes", [a_node_seen("gpu-001"), a_node_seen("gpu-002")])
    mirror.see("nodes", a_node_seen("gpu-001", labels={}))
    mirror.flush()

    mirror.list("nodes", [a_node_seen("gpu-002")])

    assert list(GoneNode.objects.get(name="gpu-001").pools.all()) == [pool]


def test_what_has_telemetry_after_the_last_page_counts_from_then_on(mirror):
    mirror.record_update(ListBegun("nodes"), ListPage("nodes", (a_node_seen(),), "55", is_last=True))
    mirror.later(seconds=8)
    mirror.record_update(Opened("nodes"), Changed("nodes", a_node_seen(labels=HELD), False, "56"))

    mirror.flush()

    bookmark = mirror.bookmark("nodes")
    assert (bookmark.resource_version, bookmark.last_seen_at) == ("56", mirror.now)
    assert Node.objects.get().is_held


def test_half_a_list_deletes_nothing(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001"), a_node_seen("gpu-002")])

    mirror.record_update(ListBegun("nodes"), ListPage("nodes", (a_node_seen("gpu-002"),), "300", is_last=False))
    mirror.flush()
    mirror.record_update(
        ListBegun("nodes"), ListPage("nodes", (a_node_seen("gpu-001"),), "301", is_last=True)
    )  # 410 in between
    mirror.flush()

    assert [node.name for node in Node.objects.all()] == ["gpu-001"]


def test_while_a_list_is_read_again_what_we_know_grows_older(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.flush(is_last=True)
    last_seen_at = mirror.bookmark("nodes").last_seen_at

    mirror.later(seconds=20)
    mirror.record_update(ListBegun("nodes"), ListPage("nodes", (a_node_seen(),), "300", is_last=False))
    mirror.flush(is_last=True)

    assert mirror.bookmark("nodes").last_seen_at == last_seen_at


def test_an_allocation_follows_the_pods(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.list(
        "pods", [a_pod_seen("a", gpus=2), a_pod_seen("b", gpus=4), a_pod_seen("done", gpus=1, phase="Succeeded")]
    )
    listed = Node.objects.get().gpu_allocated

    mirror.see("pods", a_pod_seen("b", gpus=4), is_gone=True)
    mirror.flush()

    assert (listed, Node.objects.get().gpu_allocated) == (6, 2)


def test_a_node_that_comes_back_under_its_name_gets_its_pods(mirror):
    mirror.list("nodes", [a_node_seen(uid="first")])
    mirror.list("pods", [a_pod_seen(gpus=2)])

    mirror.see("nodes", a_node_seen(uid="first"), is_gone=True)
    mirror.see("nodes", a_node_seen(uid="second"))
    mirror.flush()

    node = Node.objects.get()
    assert (node.uid, node.gpu_allocated, Pod.objects.get().node_id) == ("second", 2, node.pk)


def test_a_node_that_a_list_has_under_another_uid_gets_its_pods(mirror):
    """Pages of a list are written as they come: the new node is there before the old one is known to be gone."""
    mirror.list("nodes", [a_node_seen(uid="first")])
    mirror.list("pods", [a_pod_seen(gpus=2)])

    mirror.record_update(ListBegun("nodes"), ListPage("nodes", (a_node_seen(uid="second"),), "300", is_last=False))
    mirror.flush()
    mirror.record_update(ListPage("nodes", (), "300", is_last=True))
    mirror.flush()

    node = Node.objects.get()
    assert (node.uid, node.gpu_allocated, Pod.objects.get().node_id) == ("second", 2, node.pk)
    assert PodPlacement.objects.get(until=None).node_uid == "second"


def test_a_lost_gpu_keeps_its_row(mirror):
    mirror.list("nodes", [a_node_seen(gpus=8)])

    mirror.see("nodes", a_node_seen(gpus=7, labels=GPU_LABELS | {"nvidia.com/gpu.count": "7"}))
    mirror.flush()

    node = Node.objects.get()
    assert (node.gpu_capacity, node.gpu_expected, node.gpus_missing, node.gpus.count()) == (7, 8, 1, 8)


def test_a_node_is_in_the_pools_that_pick_it(mirror):
    h100 = a_pool(mirror.cluster, selector="nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3")
    a_pool(mirror.cluster, selector="nvidia.com/gpu.product=NVIDIA-H200")

    mirror.list("nodes", [a_node_seen()])

    assert [*Node.objects.get().pools.all()] == [h100]


def test_a_node_stays_in_its_pool_while_its_gpu_labels_are_away(mirror):
    pool = a_pool(mirror.cluster, selector="nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3,team=a")
    mirror.list("nodes", [a_node_seen(labels=GPU_LABELS | {"team": "a"})])

    mirror.see("nodes", a_node_seen(labels={"nvidia.com/gpu.present": "true", "team": "a"}))
    mirror.flush()
    while_silent = pool.nodes.count()
    mirror.see("nodes", a_node_seen(labels={"nvidia.com/gpu.present": "true", "team": "b"}))
    mirror.flush()

    assert (while_silent, pool.nodes.count()) == (1, 0)


def test_a_lease_that_is_lost_writes_nothing(mirror):
    mirror.list("nodes", [a_node_seen()])
    Observer.objects.update(epoch=2)

    mirror.see("nodes", a_node_seen(labels=HELD))
    with pytest.raises(LostLease):
        mirror.flush()

    assert not Node.objects.get().is_held


def test_every_flush_moves_the_lease(mirror):
    mirror.later(minutes=5)

    mirror.flush()

    assert Observer.objects.get().lease_until > mirror.now


def test_when_we_last_heard_is_written_every_ten_seconds_and_not_more(mirror):
    mirror.list("nodes", [])
    mirror.flush(is_last=True)
    written = []

    for _ in range(4):
        mirror.later(seconds=4)
        mirror.record_update(Changed("nodes", None, False, str(mirror.version)))
        mirror.flush()
        written.append((mirror.now - mirror.bookmark("nodes").last_seen_at).total_seconds())

    assert written == [4, 8, 0, 4]


def test_a_kind_we_may_not_see_says_so_and_the_others_go_on(mirror, told):
    mirror.list("nodes", [a_node_seen()])
    told.clear()

    mirror.record_update(Failed("pods", "forbidden", "pods is forbidden: User cannot list"))
    mirror.flush()

    assert (mirror.bookmark("pods").state, mirror.bookmark("nodes").state) == ("forbidden", "watching")
    assert told[0]["kinds"] == ["bookmarks"]


def test_an_outage_leaves_the_nodes_as_they_were(mirror):
    mirror.list("nodes", [a_node_seen()])

    mirror.later(minutes=2)
    mirror.record_update(Failed("nodes", "failing", "refused the connection"))
    mirror.flush()

    bookmark = mirror.bookmark("nodes")
    assert Node.objects.get().is_ready
    assert (bookmark.state, bookmark.is_fresh(now=mirror.now)) == ("failing", False)


def test_a_list_that_was_read_is_kept_when_its_watch_fails_before_it_is_written(mirror):
    page = ListPage("nodes", (a_node_seen(),), "55", is_last=True)

    mirror.record_update(ListBegun("nodes"), page, Failed("nodes", "failing", "refused the connection"))
    mirror.flush()

    bookmark = mirror.bookmark("nodes")
    assert Node.objects.get().name == "gpu-001"
    assert (bookmark.resource_version, bookmark.state) == ("55", "failing")


def test_pods_begin_when_it_is_known_which_are_kept(mirror):
    def ready() -> bool:
        return all(mirror.deltas.cursors[name].allows_dependents for name in KINDS["pods"].after)

    at_first = ready()
    mirror.list("nodes", [a_node_seen()])
    mirror.record_update(Failed("daemonsets.apps", "forbidden", "no"))

    assert (at_first, ready()) == (False, True)


def test_pods_of_a_node_that_turns_out_to_have_gpus_are_listed_again(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.list("pods", [])
    assert not mirror.to_list_again

    mirror.see("nodes", a_node_seen("gpu-002"))

    assert mirror.to_list_again == {"pods"}


def test_so_are_they_by_who_follows_a_worker_that_died_in_its_lease(mirror):
    mirror.list("nodes", [])
    mirror.list("pods", [a_pod_seen(gpus=0)])
    assert mirror.bookmark("pods").resource_version

    mirror.see("nodes", a_node_seen())
    mirror.flush()
    mirror.begin()

    assert mirror.deltas.cursors["pods"].resource_version == ""  # list first


@pytest.mark.parametrize("kind", ["pods", "persistentvolumes", "storageclasses.storage.k8s.io"])
def test_rows_of_the_version_before_are_listed_again_though_its_worker_goes_on_after_the_migration(mirror, kind):
    mirror.list(kind, [])
    Bookmark.objects.update(row_version=0)  # as the migration gives it to all bookmarks
    mirror.record_update(Changed(kind, None, is_gone=False, resource_version="200"))
    mirror.flush(is_last=True)
    assert mirror.bookmark(kind).resource_version == "200"

    mirror.begin()
    before = mirror.deltas.cursors[kind].resource_version
    mirror.list(kind, [])
    mirror.begin()

    assert (before, mirror.deltas.cursors[kind].resource_version) == ("", str(mirror.version))


def test_so_are_they_when_nodes_are_first_seen_after_them(mirror):
    """As when nodes were forbidden: pods did not wait for them."""
    mirror.record_update(Failed("nodes", "forbidden", "no"))
    mirror.list("pods", [a_pod_seen(gpus=0)])

    mirror.list("nodes", [a_node_seen()])

    assert mirror.to_list_again == {"pods"}


def test_so_are_they_when_it_turns_out_in_a_second_list(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.list("pods", [])

    mirror.list("nodes", [a_node_seen(), a_node_seen("gpu-002")])

    assert mirror.to_list_again == {"pods"}


def test_a_long_list_is_written_in_short_transactions(mirror):
    mirror.list("nodes", [a_node_seen(f"gpu-{number}") for number in range(450)])

    assert Node.objects.count() == 450
    assert Observer.objects.get().batch == 5


def test_of_a_quiet_cluster_all_bookmarks_move_in_one_write(mirror):
    quiet = ("nodes", "pods", "daemonsets.apps")
    for kind in quiet:
        mirror.list(kind, [])
        mirror.record_update(Opened(kind))
    mirror.flush()
    mirror.later(seconds=30)

    for kind in quiet:
        mirror.record_update(Opened(kind))
    with CaptureQueriesContext(connection) as asked:
        mirror.flush()

    assert sum("fleet_bookmark" in each["sql"] for each in asked) == 1
    assert set(Bookmark.objects.filter(kind__in=quiet).values_list("last_seen_at", flat=True)) == {mirror.now}


def test_a_change_costs_a_fixed_number_of_queries(mirror, django_assert_max_num_queries):
    a_pool(mirror.cluster, selector="nvidia.com/gpu.present=true")
    mirror.list("nodes", [a_node_seen(f"gpu-{number}") for number in range(100)])

    for number in range(100):
        mirror.see("nodes", a_node_seen(f"gpu-{number}", labels=HELD))
    with django_assert_max_num_queries(21):
        mirror.flush()

    assert Node.objects.filter(is_held=True).count() == 100


def test_a_watch_that_goes_on_makes_a_failing_kind_well(mirror):
    mirror.list("nodes", [a_node_seen()])
    mirror.record_update(Failed("nodes", "failing", "no answer"))
    mirror.flush()

    mirror.record_update(Opened("nodes"))
    mirror.flush()

    bookmark = Bookmark.objects.get(kind="nodes")
    assert (bookmark.state, bookmark.message) == ("watching", "")


@pytest.fixture
def _choosy(monkeypatch):
    """A database that takes everything but nodes of one kernel, and only says so when it is asked."""
    real = upsert.save

    def save(cluster_id, written, versions, **given):
        if any(row.get("kernel") == "poison" for row in written.alive):
            raise DataError("value is poison")
        real(cluster_id, written, versions, **given)

    monkeypatch.setattr(batch_write, "save", save)


def a_poisoned(name: str, **given):
    document = node_document(name, **given)
    document["status"]["nodeInfo"]["kernelVersion"] = "poison"
    return msgspec.convert(document, NodeSeen, strict=False)


@pytest.mark.usefixtures("_choosy")
def test_rows_that_the_database_refuses_cost_only_themselves(mirror, told):
    nodes = [a_node_seen(f"gpu-{number}") for number in range(120)]
    nodes[7], nodes[90] = a_poisoned("gpu-7"), a_poisoned("gpu-90")

    mirror.list("nodes", nodes)

    mark = mirror.bookmark("nodes")
    assert Node.objects.count() == 118
    assert (mark.state, sorted(mark.unread)) == ("watching", ["uid-of-gpu-7", "uid-of-gpu-90"])
    assert mark.unread["uid-of-gpu-7"] == {
        "name": "gpu-7",
        "reason": "The database rejects the row: value is poison",
    }
    assert told[-1]["seq"] == Observer.objects.get().batch


@pytest.mark.usefixtures("_choosy")
def test_what_was_refused_is_not_tried_again_until_it_changes(mirror, django_assert_num_queries):
    mirror.list("nodes", [a_poisoned("gpu-001")])
    mirror.flush(is_last=True)

    mirror.see("nodes", a_poisoned("gpu-001", version="8"))
    size = mirror.deltas.size
    mirror.see("nodes", a_node_seen())
    mirror.flush()

    assert size == 0
    assert Node.objects.get().name == "gpu-001"
    assert mirror.bookmark("nodes").unread == {}


@pytest.mark.usefixtures("_choosy")
def test_a_row_that_is_refused_stays_as_it_was(mirror):
    mirror.list("nodes", [a_node_seen()])

    mirror.see("nodes", a_poisoned("gpu-001", labels=HELD))
    mirror.flush()

    assert not Node.objects.get().is_held
    assert list(mirror.bookmark("nodes").unread) == ["uid-of-gpu-001"]


def test_what_a_list_lacks_stays_while_one_of_it_has_no_uid(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001"), a_node_seen("gpu-002")])

    unread = Unread("", "rotten", "Expected `str`, got `int`")
    mirror.record_update(
        ListBegun("nodes"), ListPage("nodes", (a_node_seen("gpu-001"),), "300", is_last=True, unread=(unread,))
    )
    mirror.flush()

    assert Node.objects.count() == 2


def test_an_unreadable_object_that_is_deleted_is_gone(mirror):
    mirror.list("nodes", [a_node_seen()])
    unread = Unread("uid-of-gpu-001", "gpu-001", "Expected `str`, got `int`")
    mirror.record_update(Changed("nodes", None, False, "301", unread))
    mirror.flush()
    kept = Node.objects.count(), list(mirror.bookmark("nodes").unread)

    mirror.record_update(Changed("nodes", None, True, "302", unread))
    mirror.flush()

    assert kept == (1, ["uid-of-gpu-001"])
    assert (Node.objects.count(), mirror.bookmark("nodes").unread) == (0, {})


def test_a_kind_that_is_no_longer_served_has_no_rows(mirror, told):
    mirror.list("nvidiadrivers.nvidia.com", [a_driver_seen()])

    mirror.record_update(Failed("nvidiadrivers.nvidia.com", BookmarkState.ABSENT, "not installed"))
    mirror.flush()
    told.clear()
    mirror.record_update(Failed("nvidiadrivers.nvidia.com", BookmarkState.ABSENT, "not installed"))
    mirror.flush()

    mark = mirror.bookmark("nvidiadrivers.nvidia.com")
    assert DriverObject.objects.count() == 0
    assert (mark.state, mark.resource_version, mark.listed_at) == ("absent", "", None)
    assert told == []


def test_a_kind_that_we_may_no_longer_see_keeps_its_rows(mirror):
    mirror.list("nodes", [a_node_seen()])

    mirror.record_update(Failed("nodes", BookmarkState.FORBIDDEN, "nodes is forbidden"))
    mirror.flush()

    assert (Node.objects.count(), mirror.bookmark("nodes").state) == (1, "forbidden")


def test_how_long_a_change_waited_is_written_with_the_next_flush(mirror, told):
    mirror.list("nodes", [a_node_seen()])
    told.clear()

    for labels in (HELD, GPU_LABELS):
        mirror.see("nodes", a_node_seen(labels=labels))
        mirror.flusher.flush(mirror.deltas, waiting_since=time.monotonic() - 3)
        mirror.later(seconds=11)

    observer = Observer.objects.get()
    assert 3000 <= observer.lag_ms < 3500
    assert observer.behind_since is not None
    assert "bookmarks" in told[-1]["kinds"]


def test_an_object_that_our_rules_stumble_over_costs_itself_and_one_stack(mirror, monkeypatch, caplog):
    nodes = KINDS["nodes"]

    def stumble(seen, scope):
        if seen.name == "gpu-002":
            raise ZeroDivisionError("nobody thought of that")
        return nodes.row(seen, scope)

    monkeypatch.setitem(KINDS, "nodes", replace(nodes, row=stumble))
    mirror.list("nodes", [a_node_seen("gpu-001"), a_node_seen("gpu-002")])
    for _ in range(3):
        mirror.see("nodes", a_node_seen("gpu-002"))
    mirror.flush()

    assert Node.objects.get().name == "gpu-001"
    assert "ZeroDivisionError: nobody" in mirror.bookmark("nodes").unread["uid-of-gpu-002"]["reason"]
    assert caplog.text.count("an object has no row") == 1


def test_what_an_exporter_said_of_a_machine_is_not_said_of_the_next_one_of_its_name(mirror):
    mirror.list("nodes", [a_node_seen()])
    a_reading(Node.objects.get(), a_device_told(0, uuid="GPU-of-old"))
    before = allocations_on([Node.objects.get()], now=mirror.now)

    mirror.list("nodes", [a_node_seen(uid="another")])

    (node,) = Node.objects.all()
    assert next(iter(before.values())).boards[0].uuid == "GPU-of-old"
    assert [board.uuid for board in allocations_on([node], now=mirror.now)[node.pk].boards] == [""] * 8
