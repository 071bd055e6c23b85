"""The checklist of a pod from rows and telemetry, on its page and in REST."""

import math
from array import array
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet.models import ClusterEvent, Gpu
from health.models import GpuHour
from health.sources import snapshots
from health.sources.hours import provide_partition
from health.telemetry.base import TelemetryReading
from health.telemetry.snapshot import GpuDevice, MetricColumn, TelemetrySnapshot
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now", "redis")]
QUERIES_AT_MOST = 40


@pytest.fixture
def node():
    row = make.a_node(make.a_cluster("east"), "gpu-1", gpus=2)
    for gpu in Gpu.objects.filter(node=row):
        Gpu.objects.filter(pk=gpu.pk).update(uuid=f"GPU-{gpu.index}")
    return row


def checked(pod) -> dict:
    answer = calling(make.a_user(role="viewer")).get(f"/api/v1/pods/{pod.pk}/checklist").json()
    return {item["key"]: item for item in answer["items"]}


def an_hour(node, index: int, *, ago: int, xids: int | None) -> None:
    hour = NOON - timedelta(hours=ago)
    provide_partition(hour)
    row = {"uuid": f"GPU-{index}", "index": index, "node_name": node.name, "seen_s": 3600.0, "xids": xids}
    GpuHour.objects.create(cluster=node.cluster, hour=hour, **row)


def report(node, **values: float) -> None:
    """Keeps a snapshot of GPU 1 with these values."""
    at = array("d", [NOON.timestamp()])
    columns = {key: MetricColumn(array("d", [value]), at[:]) for key, value in values.items()}
    found = TelemetrySnapshot(NOON.timestamp(), (GpuDevice(node.name, 1, "GPU-1"),), columns)
    snapshots.forget(node.cluster_id)
    snapshots.store(node.cluster_id, TelemetryReading(found, frozenset(columns), {}))
    make.a_source(node.cluster, exported=sorted(columns))


def test_a_pod_is_checked_against_its_own_gpu_and_its_own_time(node):
    pod = make.a_pod(node, "train", devices={"nvidia.com/gpu": ["GPU-1"]}, started_at=NOON - timedelta(hours=3))
    report(node, memory_used_mib=40_960.0, ecc_uncorrected=0.0, gpu_utilisation_ratio=math.nan)
    for ago in (5, 2, 1):
        an_hour(node, 1, ago=ago, xids=7 if ago == 5 else 0)  # five hours ago another pod had it
    an_hour(node, 0, ago=1, xids=3)

    items = checked(pod)

    assert (items["allocation"]["answer"], items["allocation"]["sentence"]) == ("yes", "The pod has GPU 1 (GPU-1).")
    assert items["runtime"]["sentence"] == "Memory of GPU 1 is in use, and no other pod uses it."
    assert items["xids"]["answer"] == "yes"
    assert items["memory-errors"]["answer"] == "yes"
    assert items["neighbours"]["answer"] == "yes"


def test_an_xid_and_a_finding_of_its_time_are_named(node):
    pod = make.a_pod(node, "train", devices={"nvidia.com/gpu": ["GPU-1"]}, started_at=NOON - timedelta(hours=3))
    report(node, memory_used_mib=1.0)
    an_hour(node, 1, ago=2, xids=2)

    assert "GPU 1 had at least 2 Xids" in checked(pod)["xids"]["sentence"]

    make.a_finding(node.cluster, "GPU 1 of gpu-1", node=node, rule="gpu-xid", gpu_uuid="GPU-1", title="Xid 79 on it")
    assert checked(pod)["xids"]["sentence"] == "Xid 79 on it."


def test_neighbours_on_a_shared_gpu_are_listed_with_its_memory(node):
    node.layout = {"nvidia.com/gpu": "whole/time-slicing*4"}
    node.save()
    pod = make.a_pod(node, "train", devices={"nvidia.com/gpu": ["GPU-1"]})
    make.a_pod(node, "other", namespace="team-b", devices={"nvidia.com/gpu": ["GPU-1"]})
    report(node, memory_used_mib=40_960.0)

    item = checked(pod)["neighbours"]

    assert item["answer"] == "no"
    assert "GPU 1 is shared with team-b/other" in item["sentence"]
    assert "Memory in use: GPU 1 40.0 of" in item["sentence"]


def test_without_telemetry_and_events_nothing_passes(node):
    pod = make.a_pod(node, "train", devices={"nvidia.com/gpu": ["GPU-1"]})

    items = checked(pod)

    assert {items[key]["answer"] for key in ("xids", "memory-errors", "events", "runtime", "cuda-version")} == {
        "unknown"
    }
    assert items["xids"]["sentence"] == "The cluster has no telemetry source."
    assert "Events are not checked" in items["events"]["sentence"]


def test_a_warning_of_the_kubelet_is_quoted_and_one_of_the_program_is_not(node):
    make.a_bookmark(node.cluster, "events")
    pod = make.a_pod(node, "train", is_ready=False, ready_since=NOON, started_at=None, phase="Pending")
    row = {"about_kind": "Pod", "about_name": "train", "about_uid": pod.uid, "is_warning": True, "last_at": NOON,
           "changed_at": NOON, "source": "kubelet on gpu-1"}  # fmt: skip
    for reason, message in (("FailedMount", "no such volume"), ("BackOff", "restarting")):
        ClusterEvent.objects.create(cluster=node.cluster, uid=reason, reason=reason, message=message, **row)

    item = checked(pod)["events"]

    assert (item["answer"], item["sentence"]) == ("no", "FailedMount: no such volume")
    assert item["at"] == "2026-11-21T12:00:00Z"


def test_the_page_shows_the_checklist_of_a_pod_with_a_node(node):
    viewer = visiting(make.a_user(role="viewer"))
    ended = {"container": "main", "reason": "OOMKilled", "exit_code": 137, "at": NOON.isoformat()}
    pod = make.a_pod(node, "train", container_settings={"ended": ended})

    with CaptureQueriesContext(
        connection,
    ) as queries:
        text = page(viewer, f"/pods/{pod.pk}").text
    assert "Memory was enough no main was killed because it exceeded its memory limit" in text
    assert len(queries) <= QUERIES_AT_MOST
    assert "Checklist" not in page(viewer, f"/pods/{make.a_pending_pod(node.cluster).pk}").text
