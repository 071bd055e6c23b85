import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.observer.mirror.rows.driver_object import driver_object_row
from fleet.observer.mirror.rows.gpu_requests import extended_resources
from fleet.observer.mirror.rows.node import node_row
from fleet.observer.mirror.rows.operand import operand_row, revision_row
from fleet.observer.mirror.rows.pod import is_kept, pod_row
from fleet.observer.mirror.watch_scope import WatchScope
from gpu.resources import product_of
from kube.quantity import whole_quantity
from kube.structs import NodeSeen
from tests.fleet.documents import (
    GPU_LABELS,
    SINCE,
    a_daemonset_seen,
    a_driver_seen,
    a_node_seen,
    a_pod_seen,
    a_revision_seen,
    node_document,
)


def test_a_nodes_row_has_what_the_pages_show():
    row = node_row(a_node_seen())

    assert row["is_ready"] is True
    assert (row["gpu_capacity"], row["gpu_allocatable"], row["gpu_memory_mib"]) == (8, 8, 81559)
    assert (row["driver_version"], row["kernel"]) == ("580.95.05", "5.15.0-122-generic")
    assert (row["zone"], row["instance_type"]) == ("zone-a", "hgx-h100")


def test_a_silent_kubelet_is_not_a_broken_node():
    assert node_row(a_node_seen(ready="Unknown"))["is_ready"] is None


def test_no_capacity_is_not_a_capacity_of_zero():
    seen = a_node_seen()
    seen.status.capacity.pop("nvidia.com/gpu")

    assert node_row(seen)["gpu_capacity"] is None
    assert node_row(a_node_seen(gpus=0))["gpu_capacity"] == 0


def test_a_hold_of_ours_names_its_plan_and_a_foreign_one_nobody():
    skip = GPU_LABELS | {"nvidia.com/gpu-driver-upgrade.skip": "true"}

    ours = node_row(a_node_seen(labels=skip, annotations={"quarterdeck.io/held-by": "plan-7"}))
    foreign = node_row(a_node_seen(labels=skip))

    assert (ours["is_held"], ours["held_by"]) == (True, "plan-7")
    assert (foreign["is_held"], foreign["held_by"]) == (True, "")


def test_what_keeps_autoscalers_off_a_node_is_kept_of_its_annotations():
    marks = {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}

    row = node_row(a_node_seen(annotations=marks | {"karpenter.sh/nodepool-hash": "1"}))

    assert row["annotations"] == marks


def test_the_hold_is_only_the_value_true():
    row = node_row(a_node_seen(labels=GPU_LABELS | {"nvidia.com/gpu-driver-upgrade.skip": "True"}))

    assert not row["is_held"]


def test_an_older_feature_discovery_names_the_version_in_parts():
    parts = {
        "nvidia.com/cuda.driver.major": "535",
        "nvidia.com/cuda.driver.minor": "104",
        "nvidia.com/cuda.driver.rev": "05",
    }

    assert node_row(a_node_seen(labels=parts))["driver_version"] == "535.104.05"


@pytest.mark.parametrize(
    ("label", "product"),
    [
        ("NVIDIA-H100-80GB-HBM3", "NVIDIA-H100-80GB-HBM3"),
        ("NVIDIA-A100-SXM4-80GB-SHARED", "NVIDIA-A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "NVIDIA-A100-SXM4-80GB"),
        ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED", "NVIDIA-A100-SXM4-80GB"),
    ],
)
def test_sharing_does_not_make_another_product(label, product):
    assert product_of(label) == product


def test_only_annotations_of_the_stack_are_kept():
    seen = a_node_seen(annotations={"quarterdeck.io/held-by": "plan-1", "kubectl.kubernetes.io/last-applied": "{}"})

    assert set(node_row(seen)["annotations"]) == {"quarterdeck.io/held-by"}


def test_only_life_cycle_conditions_that_are_true_are_kept_beside_the_reports_of_detectors():
    document = node_document()
    assert node_row(msgspec.convert(document, NodeSeen, strict=False))["lifecycle"] is None
    document["status"]["conditions"] += [
        {"type": "Drained", "status": "True", "reason": "KubectlDrainCompleted", "lastTransitionTime": SINCE},
        {"type": "DrainInProgress", "status": "False", "reason": "KubectlDrainCompleted"},
        {"type": "KernelDeadlock", "status": "True"},
    ]
    (kept,) = node_row(msgspec.convert(document, NodeSeen, strict=False))["lifecycle"]

    assert (kept["type"], kept["reason"], kept["message"]) == ("Drained", "KubectlDrainCompleted", "")
    assert kept["since"].startswith(SINCE[:19])


@pytest.mark.parametrize(
    ("value", "verdict", "severity"),
    [("EVICT", "wrong", "critical"), ("ERR", "wrong", "critical"), ("WARN", "wrong", "warning"),
     ("TESTING", "unknown", ""), ("PASS", "fine", None)],
)  # fmt: skip
def test_a_label_of_a_checker_is_a_report_of_its_own(value, verdict, severity):
    said = "ERR_2024-11-04_09.32.03UTC_page_retirement_row_remap.0"
    labels = GPU_LABELS | {"autopilot.ibm.com/gpuhealth": value, "autopilot.ibm.com/dcgm.level.3": said}

    (row,) = (
        each for each in node_row(a_node_seen(labels=labels))["conditions"] if each["type"].startswith("autopilot")
    )

    assert (row["status"], row["verdict"], row.get("severity")) == (value, verdict, severity)
    assert verdict == "fine" or (row["reporter"], row["message"]) == ("IBM Autopilot", f"DCGM level 3: {said}")


def test_a_pods_row_has_what_the_gates_ask():
    row = pod_row(a_pod_seen(gpus=4, volumes=[{"name": "scratch", "emptyDir": {}}]))

    assert (row["gpus"], row["is_ready"], row["restarts"], row["has_empty_dir"]) == (4, True, 2, True)
    assert (row["owner_kind"], row["owner_name"]) == ("Job", "train")


def test_a_pod_that_waits_says_why():
    crashing = {"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}}
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/64 nodes"}

    assert pod_row(a_pod_seen(statuses=[crashing]))["waiting_reason"] == "CrashLoopBackOff: back-off 5m0s"
    assert pod_row(a_pod_seen(statuses=[], conditions=[unscheduled]))["waiting_reason"] == "Unschedulable: 0/64 nodes"


def test_a_pod_that_crashes_says_why_between_two_back_offs_as_well():
    died = {"terminated": {"exitCode": 1, "reason": "Error"}}
    running_again = {"name": "main", "ready": False, "restartCount": 3, "state": {"running": {}}, "lastState": died}
    well_again = running_again | {"ready": True}

    assert pod_row(a_pod_seen(statuses=[running_again]))["waiting_reason"] == "Error: exit code 1, 3 restarts"
    assert pod_row(a_pod_seen(statuses=[well_again]))["waiting_reason"] == ""


def test_an_init_container_counts_only_where_it_needs_more():
    def asks(gpus: int, **more: str):
        return {"name": "c", "resources": {"limits": {"nvidia.com/gpu": gpus}}, **more}

    def gpus(containers, inits):
        return extended_resources(a_pod_seen(containers=containers, init_containers=inits))

    assert gpus([asks(1), asks(2)], [asks(2)]) == {"nvidia.com/gpu": 3}
    assert gpus([asks(1)], [asks(4)]) == {"nvidia.com/gpu": 4}
    assert gpus([asks(1)], [asks(1, restartPolicy="Always")]) == {"nvidia.com/gpu": 2}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"gpus": 1, "node": ""}, True),
        ({"gpus": 0, "node": "gpu-001"}, True),
        ({"gpus": 0, "node": "cpu-001", "namespace": "gpu-operator"}, True),
        ({"gpus": 0, "node": "cpu-001"}, False),
        ({"gpus": 0, "node": ""}, False),
    ],
)
def test_a_pod_is_kept_when_it_concerns_gpus(given, kept):
    scope = WatchScope(gpu_nodes={"gpu-001"}, operator_namespaces={"gpu-operator"})

    assert is_kept(a_pod_seen(**given), scope) is kept


def test_only_daemonsets_of_the_stack_are_kept():
    row = operand_row(a_daemonset_seen())

    assert (row["operand"], row["owner_kind"], row["owner_name"]) == ("driver", "NVIDIADriver", "h100")
    assert (row["generation"], row["observed_generation"], row["desired"], row["ready"], row["updated"]) == (
        3,
        2,
        4,
        3,
        1,
    )
    assert operand_row(a_daemonset_seen(labels={"app": "kube-proxy"})) is None


def test_a_revision_names_the_hash_that_its_pods_carry():
    row = revision_row(a_revision_seen())

    assert (row["owner_uid"], row["revision"], row["revision_hash"]) == ("uid-of-nvidia-driver", 2, "6d5f7c")
    assert revision_row(a_revision_seen(labels={"app": "kube-proxy"})) is None


def test_a_driver_object_says_who_else_writes_it():
    annotations = {"meta.helm.sh/release-name": "gpu-operator", "meta.helm.sh/release-namespace": "gpu"}
    labels = {"app.kubernetes.io/version": "v26.7.0", "argocd.argoproj.io/instance": "platform"}

    row = driver_object_row(a_driver_seen(metadata={"annotations": annotations, "labels": labels}))

    assert row["owned_by"] == ["Helm release gpu/gpu-operator", "Argo CD platform"]
    assert (row["operator_version"], row["version"], row["node_selector"]) == ("v26.7.0", "580.95.05", {"pool": "h100"})


def test_a_driver_objects_message_is_that_of_what_is_wrong():
    waiting = {"type": "Ready", "status": "False", "reason": "DriverNotReady", "message": "Waiting for driver pod"}
    wrong = {"type": "Error", "status": "True", "reason": "ConflictingNodeSelector", "message": "two match"}

    assert driver_object_row(a_driver_seen(conditions=[waiting]))["message"] == "DriverNotReady: Waiting for driver pod"
    assert (
        driver_object_row(a_driver_seen(conditions=[waiting, wrong]))["message"] == "ConflictingNodeSelector: two match"
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("8", 8),
        ("2k", 2000),
        ("1Ki", 1024),
        ("1500m", 1),
        ("1e3", 1000),
        ("-1", 0),
        ("", None),
        ("eight", None),
        (None, None),
    ],
)
def test_quantities_are_read_as_whole_numbers(written, read):
    assert whole_quantity(written) == read


@given(st.text(max_size=12))
def test_no_text_breaks_a_quantity(text):
    assert (whole_quantity(text) or 0) >= 0
