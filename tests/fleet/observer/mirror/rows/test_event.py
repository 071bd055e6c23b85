"""Events as kubelets, the scheduler and the GPU operator report them; the operator's are those of
k8s-operator-libs, pkg/upgrade (reason GPUDriverUpgrade, in the namespace default)."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from fleet.observer.mirror.rows.event import event_row
from fleet.observer.mirror.watch_scope import WatchScope
from kube.structs.events import EventSeen

SCOPE = WatchScope({"gpu-001"}, {"gpu-operator"}, is_mirrored=lambda uid: uid == "uid-of-train-0")
META = {
    "name": "train-0.17a8c1d2e3f4a5b6",
    "namespace": "research",
    "uid": "uid-of-event",
    "creationTimestamp": "2026-11-21T08:00:00Z",
}
POD = {"kind": "Pod", "namespace": "research", "name": "train-0", "uid": "uid-of-train-0", "apiVersion": "v1"}
NODE = {"kind": "Node", "name": "gpu-001", "uid": "gpu-001"}


def an_event(about: object = POD, **given: Any) -> EventSeen:
    return msgspec.convert({"metadata": META, "involvedObject": about, **given}, EventSeen, strict=False)


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 11, 21, hour, minute, tzinfo=UTC)


def test_an_event_of_a_kubelet_names_its_node_and_how_often():
    row = event_row(
        an_event(
            type="Warning",
            reason="BackOff",
            message="Back-off restarting failed container main in pod train-0",
            source={"component": "kubelet", "host": "gpu-001"},
            count=7,
            firstTimestamp="2026-11-21T08:00:00Z",
            lastTimestamp="2026-11-21T08:12:00Z",
            eventTime=None,
        ),
        SCOPE,
    )

    assert (row["is_warning"], row["reason"], row["source"], row["count"]) == (True, "BackOff", "kubelet on gpu-001", 7)
    assert (row["first_at"], row["last_at"]) == (at(8), at(8, 12))
    assert (row["about_kind"], row["about_name"], row["about_uid"]) == ("Pod", "train-0", "uid-of-train-0")


def test_an_event_of_the_newer_api_has_its_count_and_times_elsewhere():
    row = event_row(
        an_event(
            type="Warning",
            reason="FailedScheduling",
            message="0/64 nodes are available: 64 Insufficient nvidia.com/gpu.",
            source={},
            reportingComponent="default-scheduler",
            eventTime="2026-11-21T08:00:00.123456Z",
            series={"count": 12, "lastObservedTime": "2026-11-21T09:30:00.000000Z"},
            firstTimestamp=None,
            lastTimestamp=None,
        ),
        SCOPE,
    )

    assert (row["source"], row["count"], row["last_at"]) == ("default-scheduler", 12, at(9, 30))
    assert row["first_at"].microsecond == 123456


@pytest.mark.parametrize(
    ("given", "is_warning"),
    [
        ({"type": "Warning"}, True),
        ({"type": "GpuPowerWatch", "reason": "GpuPowerWatchIsNotHealthy"}, True),  # NVSentinel: the name of its check
        (
            {
                "type": "Normal",
                "reason": "Killing",
                "message": "Container main failed liveness probe, will be restarted",
            },
            True,
        ),
        ({"type": "Normal", "reason": "Killing", "message": "Stopping container main"}, False),
        ({"type": "Normal", "reason": "Pulled"}, False),
        ({"type": "Warning", "reason": "NeverHeardOf"}, True),
        ({"type": "Normal", "reason": "NodeNotReady", "message": "Node gpu-001 status is now: NodeNotReady"}, True),
        ({"type": "Normal", "reason": "NodeHasDiskPressure"}, True),
        ({"type": "Normal", "reason": "NodeHasNoDiskPressure"}, False),
        ({"type": "Normal", "reason": "Preempted", "message": "Preempted by pod 5f on node gpu-001"}, True),
        ({"type": "Normal", "reason": "TaintManagerEviction", "message": "Marking for deletion Pod a/b"}, True),
        ({"type": "Normal", "reason": "TaintManagerEviction", "message": "Cancelling deletion of Pod a/b"}, False),
        ({}, False),
    ],
)
def test_what_reports_trouble_is_a_warning_whatever_its_type(given, is_warning):
    assert event_row(an_event(**given), SCOPE)["is_warning"] is is_warning


def test_an_event_without_any_time_is_as_old_as_its_object():
    row = event_row(an_event(), SCOPE)

    assert (row["first_at"], row["last_at"], row["count"]) == (at(8), at(8), 1)


@pytest.mark.parametrize(
    ("about", "kept"),
    [
        (NODE, True),
        (NODE | {"name": "cpu-001"}, False),
        (POD, True),
        (POD | {"uid": "another"}, False),
        (POD | {"namespace": "gpu-operator", "uid": "another"}, True),
        ({"kind": "DaemonSet", "namespace": "gpu-operator", "name": "nvidia-driver", "uid": "u"}, True),
        ({"kind": "Job", "namespace": "research", "uid": "uid-of-train-0"}, True),
        ({"kind": "Pod"}, False),
        (None, False),
    ],
)
def test_only_what_is_about_something_we_keep_is_kept(about, kept):
    assert (event_row(an_event(about, type="Normal"), SCOPE) is not None) is kept


NONE_OF_OURS = {"kind": "PyTorchJob", "namespace": "research", "name": "llm", "uid": "uid-of-llm"}
SAYS = 'Error creating: pods "llm-worker-0" is forbidden: exceeded quota: gpus'


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("FailedCreatePod", SAYS),
        ("FailedToCreateHeadPod", SAYS),
        ("FailedToCreateWorkerPod", SAYS),
        ("FailedCreate", SAYS),
    ],
)
def test_that_a_pod_was_rejected_is_kept_of_an_owner_of_any_kind(reason, message):
    row = event_row(an_event(NONE_OF_OURS, type="Warning", reason=reason, message=message), SCOPE)

    assert (row["about_kind"], row["about_uid"], row["reason"]) == ("PyTorchJob", "uid-of-llm", reason)


@pytest.mark.parametrize(
    ("about", "given"),
    [
        (NONE_OF_OURS, {"type": "Normal", "reason": "FailedCreatePod"}),
        (NONE_OF_OURS, {"type": "Warning", "reason": "FailedDeletePod"}),
        (NONE_OF_OURS, {"type": "Warning", "reason": "FailedCreate", "message": 'Failed to create machine "m-1": no'}),
        (POD | {"uid": "another"}, {"type": "Warning", "reason": "FailedCreatePodSandBox"}),
        (POD | {"uid": "another"}, {"type": "Warning", "reason": "FailedCreatePod"}),
        (NONE_OF_OURS | {"kind": "ReplicaSet"}, {"type": "Warning", "reason": "FailedCreate", "message": SAYS}),
    ],
)
def test_what_is_not_that_is_not_kept(about, given):
    assert event_row(an_event(about, **given), SCOPE) is None
