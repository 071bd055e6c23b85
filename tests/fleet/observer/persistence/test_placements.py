"""Which pod had GPUs of a node from when to when: one row a pod, and nothing for what changes nothing of that."""

from datetime import timedelta
from threading import Event

import pytest

from fleet.models import Gpu, LostLease, Node, Pod, PodPlacement, Workload
from fleet.observer.persistence import placements
from fleet.observer.persistence.cluster_removal import forget
from tests import make
from tests.fleet.documents import a_node_seen, a_pod_seen
from tests.make import NOON

HELD = [{"name": "main", "ready": True, "restartCount": 0}]


def test_begins_with_the_pod_and_ends_with_how_it_ended(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [])
    mirror.see("pods", a_pod_seen("train-0", gpus=2))
    mirror.flush()

    row = PodPlacement.objects.get()
    assert (row.node_uid, row.resources, row.until) == ("uid-of-gpu-001", {"nvidia.com/gpu": 2}, None)
    assert row.since < NOON  # when its node took it

    mirror.later(minutes=5)
    mirror.see("pods", a_pod_seen("train-0", gpus=2, phase="Succeeded"))
    mirror.flush()
    mirror.later(minutes=5)
    mirror.see("pods", a_pod_seen("train-0", gpus=2, phase="Succeeded"), is_gone=True)
    mirror.flush()

    row.refresh_from_db()
    assert (row.until, row.ended) == (NOON + timedelta(minutes=5), "Succeeded")


def test_the_topmost_owner_is_kept_for_its_hours(mirror):
    above = {"owner_kind": "JobSet", "owner_name": "llama", "owner_uid": "set"}
    row = {"kind": "Job", "namespace": "team-a", "name": "train", "created_at": NOON, "changed_at": NOON}
    job = Workload.objects.create(cluster=mirror.cluster, uid="uid-of-job", **row, **above)
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [])
    for name in ("train-0", "train-1"):
        mirror.see("pods", a_pod_seen(name))
    mirror.flush()
    train = {"owner_kind": "TrainJob", "owner_name": "llama-2", "owner_uid": "train"}
    of_set = row | {"kind": "JobSet", "name": "llama"}
    Workload.objects.create(cluster=mirror.cluster, uid="set", **of_set, **train)
    mirror.see("pods", a_pod_seen("train-0"), is_gone=True)
    mirror.flush()
    job.delete()
    mirror.see("pods", a_pod_seen("train-1"), is_gone=True)
    mirror.flush()

    first, second = PodPlacement.objects.order_by("name")
    assert (first.until is None, first.workload) == (False, "TrainJob/llama-2"), "its row came late"
    assert (second.until is None, second.workload) == (False, "JobSet/llama"), "no row names an owner now"


def test_one_that_is_deleted_is_gone_and_one_that_a_list_lacks_too(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [a_pod_seen("train-0"), a_pod_seen("train-1")])

    mirror.later(minutes=1)
    mirror.see("pods", a_pod_seen("train-0"), is_gone=True)
    mirror.flush()
    mirror.later(minutes=1)
    mirror.list("pods", [])

    found = PodPlacement.objects.order_by("name").values_list("name", "until", "ended")
    assert list(found) == [
        ("train-0", NOON + timedelta(minutes=1), ""),
        ("train-1", NOON + timedelta(minutes=2), ""),
    ]


def test_pods_without_gpus_without_a_node_or_that_are_over_are_none(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list(
        "pods", [a_pod_seen("a", gpus=0), a_pod_seen("b", node=""), a_pod_seen("c", phase="Succeeded"), a_pod_seen("d")]
    )

    assert list(PodPlacement.objects.values_list("name", flat=True)) == ["d"]


def test_pods_that_were_heard_of_before_their_node_begin_with_it(mirror):
    mirror.list("pods", [a_pod_seen("train-0")])
    assert not PodPlacement.objects.exists()

    mirror.list("nodes", [a_node_seen("gpu-001")])

    assert PodPlacement.objects.get().node_uid == "uid-of-gpu-001"


def test_what_it_had_is_kept_as_its_kubelet_told_it(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    Gpu.objects.filter(index=3).update(uuid="GPU-d")
    mirror.list("pods", [a_pod_seen("train-0")])
    Pod.objects.update(devices={"nvidia.com/gpu": ["GPU-d"]})

    mirror.see("pods", a_pod_seen("train-0"), is_gone=True)
    mirror.flush()

    assert PodPlacement.objects.get().boards == [3]


def test_which_slice_it_had_is_kept_as_its_exporter_told_it(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    Gpu.objects.filter(index=3).update(uuid="GPU-d")
    mirror.list("pods", [a_pod_seen("chat-0")])
    Pod.objects.update(resources={"nvidia.com/mig-1g.10gb": 1})
    PodPlacement.objects.update(resources={"nvidia.com/mig-1g.10gb": 1})
    told = make.a_device_told(3, Pod.objects.get(), uuid="GPU-d", gi_id="7", profile="1g.10gb")
    make.a_reading(Node.objects.get(), told)

    mirror.see("pods", a_pod_seen("chat-0"), is_gone=True)
    mirror.flush()

    row = PodPlacement.objects.get()
    assert (row.boards, row.slices) == ([3], [[3, "7"]])


def test_of_one_that_had_all_gpus_of_its_node_each_is_kept(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [a_pod_seen("train-0", gpus=8)])

    mirror.see("pods", a_pod_seen("train-0", gpus=8), is_gone=True)
    mirror.flush()

    assert PodPlacement.objects.get().boards == list(range(8))


def test_of_very_many_that_end_at_once_nobody_asks_which(mirror, monkeypatch):
    monkeypatch.setattr(placements, "LOOKED_AT_MOST", 1)
    mirror.list("nodes", [a_node_seen("gpu-001"), a_node_seen("gpu-002")])
    mirror.list("pods", [a_pod_seen("a"), a_pod_seen("b", node="gpu-002")])

    monkeypatch.setattr(placements, "gpus_of_pods", None)
    mirror.list("pods", [])

    assert not PodPlacement.objects.filter(until=None).exists()


def test_a_pod_that_only_becomes_ready_costs_no_query_for_it(mirror, django_assert_max_num_queries):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [a_pod_seen(f"train-{number}", ready="False") for number in range(4)])

    def flush(number: int, **given) -> int:
        mirror.see("pods", a_pod_seen(f"train-{number}", **given))
        with django_assert_max_num_queries(40) as seen:
            mirror.flush()
        return sum("podplacement" in query["sql"] for query in seen.captured_queries)

    assert flush(0, ready="True") == 0
    assert flush(5) == 1
    assert flush(1, phase="Succeeded") == 2


def test_ends_with_the_cluster_of_another_uid(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [a_pod_seen("train-0")])

    assert forget(mirror.cluster.pk, epoch=1, stop=Event(), clock=lambda: NOON)

    assert PodPlacement.objects.get().until == NOON


def test_a_node_that_is_made_again_under_its_name_takes_no_history_away(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [a_pod_seen("train-0")])
    began = PodPlacement.objects.get().since

    mirror.later(minutes=5)
    mirror.see("nodes", a_node_seen("gpu-001"), is_gone=True)
    mirror.flush()
    mirror.later(minutes=5)
    mirror.see("nodes", a_node_seen("gpu-001", uid="uid-of-its-heir"))
    mirror.flush()

    found = PodPlacement.objects.order_by("pk").values_list("node_uid", "since", "until")
    assert list(found) == [
        ("uid-of-gpu-001", began, NOON + timedelta(minutes=5)),
        ("uid-of-its-heir", NOON + timedelta(minutes=10), None),
    ]


def test_an_end_that_nobody_saw_says_until_when_it_was_seen(mirror):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [a_pod_seen("train-0")])

    mirror.later(hours=60)
    mirror.list("pods", [])

    row = PodPlacement.objects.get()
    assert (row.seen_until, row.until) == (NOON, NOON + timedelta(hours=60))


def test_what_its_writer_missed_is_put_right_by_the_next_one(mirror):
    """A worker of a version before, or one that died: its pods went, and came, without a placement."""
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [a_pod_seen("left"), a_pod_seen("stays"), a_pod_seen("came")])
    PodPlacement.objects.filter(name="came").delete()
    Pod.objects.filter(name="left").delete()

    placements.reconcile(mirror.cluster.pk, epoch=1, clock=lambda: NOON)

    found = PodPlacement.objects.order_by("name").values_list("name", "until")
    assert list(found) == [("came", None), ("left", NOON), ("stays", None)]
    placements.reconcile(mirror.cluster.pk, epoch=1, clock=lambda: NOON + timedelta(hours=1))
    assert list(found.all()) == [("came", None), ("left", NOON), ("stays", None)]


@pytest.mark.parametrize("act", [placements.reconcile, placements.end_all_placements])
def test_whose_lease_is_over_ends_nothing(mirror, act):
    mirror.list("nodes", [a_node_seen("gpu-001")])
    mirror.list("pods", [a_pod_seen("train-0")])
    Pod.objects.all().delete()

    with pytest.raises(LostLease):
        act(mirror.cluster.pk, epoch=99, clock=lambda: NOON)

    assert PodPlacement.objects.get().until is None


pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
