from datetime import UTC, datetime, timedelta

import pytest

from fleet.models import ClusterEvent, DriverObject, Node, Operand, OperandRevision, Pod
from health.models import CrashLog
from health.stack import read_stack
from health.stack.node_operands import operands_on
from health.stack.rows import StackRows
from health.stack.signs import split
from tests import make

DEPLOY = "nvidia.com/gpu.deploy."
GATE = f"{DEPLOY}device-plugin"
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_node(**given) -> Node:
    labels = {"nvidia.com/gpu.present": "true", GATE: "true", f"{DEPLOY}driver": "true"}
    return Node(**{"name": "gpu-1", "labels": labels, "is_ready": True} | given)


def a_daemon_set(operand: str = "device-plugin", **given) -> Operand:
    row = {"uid": operand, "name": f"nvidia-{operand}", "namespace": "gpu-operator"}
    return Operand(**{**row, "operand": operand, "node_selector": {f"{DEPLOY}{operand}": "true"}} | given)


def a_pod(operand: str = "device-plugin", **given) -> Pod:
    row = {"namespace": "gpu-operator", "name": f"{operand}-x", "uid": f"pod-{operand}", "node_name": "gpu-1"}
    return Pod(**{**row, "operand": operand, "owner_uid": operand, "is_ready": True, "phase": "Running"} | given)


def rows(operands=(), pods=(), **given) -> StackRows:
    row = {"revisions": [], "driver_objects": [], "now": NOON}
    return StackRows(operands=list(operands), pods=list(pods), **row | given)


def test_an_operand_that_is_ready_says_nothing():
    (row,) = operands_on(a_node(), rows([a_daemon_set()], [a_pod(image="nvcr.io/nvidia/k8s-device-plugin:v0.18.0")]))

    assert (row.is_wanted, row.is_ready, row.cause, row.version) == (True, True, None, "v0.18.0")


@pytest.mark.parametrize(("pods_hash", "is_current"), [("new", True), ("old", False), ("", None)])
def test_a_pod_of_an_older_template_is_not_current(pods_hash, is_current):
    revisions = [
        OperandRevision(owner_uid="device-plugin", revision=2, revision_hash="new"),
        OperandRevision(owner_uid="device-plugin", revision=1, revision_hash="old"),
    ]

    (row,) = operands_on(a_node(), rows([a_daemon_set()], [a_pod(revision_hash=pods_hash)], revisions=revisions))

    assert row.is_current is is_current


def test_a_pod_whose_daemon_set_is_not_seen_is_still_shown():
    (row,) = operands_on(a_node(labels={}), rows([], [a_pod(owner_uid="other")]))

    assert (row.pod, row.is_ready) == ("gpu-operator/device-plugin-x", True)


def test_an_operand_that_nobody_wants_here_is_not_shown():
    assert operands_on(a_node(labels={}), rows([a_daemon_set("vgpu-manager")])) == []


def test_an_operand_that_the_operator_switched_off_is_shown_as_chosen():
    (row,) = operands_on(a_node(labels={GATE: "false"}), rows([a_daemon_set()]))

    assert (row.is_wanted, row.cause.key) == (False, "switched_off")


def test_a_plugin_whose_init_container_waits_names_the_driver():
    waiting = a_pod(is_ready=False, phase="Pending", stuck_container="toolkit-validation")
    crashing = a_pod("driver", is_ready=False, waiting_reason="CrashLoopBackOff: back-off 5m0s")

    driver, plugin = operands_on(a_node(), rows([a_daemon_set("driver"), a_daemon_set()], [crashing, waiting]))

    assert driver.cause.key == "crashed"
    assert plugin.cause.title == "Waits for the driver, which is not ready on this node"


def test_nothing_waits_for_a_driver_that_is_on_the_host():
    node = a_node(labels={GATE: "true", f"{DEPLOY}driver": "pre-installed"})
    waiting = a_pod(is_ready=False, phase="Pending", stuck_container="toolkit-validation")

    driver, plugin = operands_on(node, rows([a_daemon_set("driver"), a_daemon_set()], [waiting]))

    assert driver.cause.key == "pre_installed"
    assert plugin.cause.key == "toolkit_validation"


@pytest.mark.parametrize(("minutes", "key", "weight"), [(4, "not_ready_yet", "waiting"), (6, "never_ready", "wrong")])
def test_what_has_just_begun_is_not_what_never_ends(minutes, key, weight):
    slow = a_pod(is_ready=False, started_at=NOON - timedelta(minutes=minutes))

    (row,) = operands_on(a_node(), rows([a_daemon_set()], [slow]))

    assert (row.cause.key, row.cause.weight) == (key, weight)


def test_of_the_drivers_of_many_kernels_only_this_nodes_is_shown():
    here = a_daemon_set("driver", uid="a", node_selector={f"{DEPLOY}driver": "true", "kernel": "6.8"})
    there = a_daemon_set("driver", uid="b", node_selector={f"{DEPLOY}driver": "true", "kernel": "5.15"})
    node = a_node(labels={f"{DEPLOY}driver": "true", "kernel": "6.8"})

    (row,) = operands_on(node, rows([here, there], [a_pod("driver", owner_uid="a")]))

    assert row.is_ready
    node.labels["kernel"] = "7.0"
    (row,) = operands_on(node, rows([here, there]))
    assert (row.is_wanted, row.cause.key) == (True, "no_driver_selects")


def test_without_daemon_sets_seen_no_driver_is_missed():
    others = DriverObject(kind="NVIDIADriver", name="h200")

    assert operands_on(a_node(), rows(driver_objects=[others], sees_daemon_sets=False)) == []
    assert [row.operand for row in operands_on(a_node(), rows(driver_objects=[others]))] == ["driver"]


def test_the_log_of_a_crash_tells_why():
    crashing = a_pod("driver", is_ready=False, waiting_reason="CrashLoopBackOff: back-off", stuck_container="ctr")
    log = CrashLog(pod_uid="pod-driver", container="ctr", lines="one\nfailed to unload nouveau driver: busy")
    other = CrashLog(pod_uid="pod-driver", container="other", lines="of another container")

    (row,) = operands_on(a_node(), rows([a_daemon_set("driver")], [crashing], crash_logs=[other, log]))

    assert (row.cause.key, row.log) == ("nouveau", ("one", "failed to unload nouveau driver: busy"))


def test_events_of_the_pod_and_of_its_daemon_set_tell_why():
    starting = a_pod(is_ready=False, phase="Pending")
    sandbox = ClusterEvent(
        about_uid="pod-device-plugin", reason="FailedCreatePodSandBox", message='no runtime for "nvidia" is configured'
    )
    refused = ClusterEvent(about_uid="dcgm", reason="FailedCreate", message="exceeded quota")
    node = a_node(labels={GATE: "true", f"{DEPLOY}dcgm": "true"})

    plugin, dcgm = operands_on(
        node, rows([a_daemon_set(), a_daemon_set("dcgm")], [starting], events=[sandbox, refused])
    )

    assert (plugin.cause.key, dcgm.cause.key) == ("no_runtime_handler", "cannot_be_made")


def test_a_pod_that_waits_for_a_node_is_named_with_its_daemon_set():
    lost = a_pod(uid="lost", node_name="", is_ready=False, waiting_reason="Unschedulable: 0/3 nodes are available")

    (row,) = operands_on(a_node(), rows([a_daemon_set()], [lost]))

    assert (row.cause.key, row.pod) == ("unscheduled", "")


def test_the_version_that_is_asked_for_stands_beside_the_one_that_runs():
    policy = DriverObject(kind="ClusterPolicy", name="policy", operand_versions={"device-plugin": "v0.18.1"})
    pod = a_pod(image="nvcr.io/nvidia/k8s-device-plugin:v0.18.0-ubi9")

    (row,) = operands_on(a_node(), rows([a_daemon_set()], [pod], driver_objects=[policy]))

    assert row.disagreement == "The pod has version v0.18.0-ubi9, but ClusterPolicy policy requests v0.18.1."
    policy.operand_versions = {"device-plugin": "v0.18.0"}
    (row,) = operands_on(a_node(), rows([a_daemon_set()], [pod], driver_objects=[policy]))
    assert row.disagreement == ""


@pytest.mark.parametrize(
    ("reason", "parts"),
    [
        ("CrashLoopBackOff: back-off 5m0s", ("CrashLoopBackOff", "back-off 5m0s")),
        ("Error", ("Error", "")),
        ("failed to pull: no such host", ("", "failed to pull: no such host")),
        ("", ("", "")),
    ],
)
def test_a_reason_is_one_word(reason, parts):
    assert split(reason) == parts


def a_validator(step: str, **given) -> Pod:
    row = {"is_ready": False, "phase": "Pending", "stuck_container": step}
    return a_pod("operator-validator", **row | given)


def by_operand(node, *pods) -> dict:
    return {row.operand: row for row in operands_on(node, rows([], pods))}


def test_a_validator_that_fails_at_the_toolkit_does_not_wait_for_what_waits_for_it():
    plugin = a_pod(is_ready=False, phase="Pending", stuck_container="toolkit-validation")
    crash = {"waiting_reason": "CrashLoopBackOff: back-off 5m0s", "last_words": "toolkit is not ready"}
    found = by_operand(a_node(), a_pod("container-toolkit"), plugin, a_validator("toolkit-validation", **crash))

    assert found["operator-validator"].cause.key == "toolkit_validation"
    assert found["device-plugin"].cause.key == "waits_for_validator"


def test_in_its_last_step_the_validator_waits_for_the_device_plugin():
    plugin = a_pod(is_ready=False, waiting_reason="CrashLoopBackOff: back-off 5m0s")
    found = by_operand(a_node(), plugin, a_validator("plugin-validation"))

    assert found["operator-validator"].cause.key == "waits"


def test_a_test_of_the_validator_is_shown_until_it_is_done():
    running = a_pod("cuda-test", is_ready=False, owner_uid="policy")
    done = a_pod("plugin-test", is_ready=False, phase="Succeeded", owner_uid="policy", uid="done")

    assert set(by_operand(a_node(), running, done)) >= {"cuda-test"}
    assert "plugin-test" not in by_operand(a_node(), running, done)


def test_a_test_that_once_failed_is_not_shown_where_the_validator_is_content():
    failed = a_pod("plugin-test", is_ready=False, phase="Failed", owner_uid="policy")

    assert "plugin-test" in by_operand(a_node(), failed, a_validator("plugin-validation"))
    assert "plugin-test" not in by_operand(a_node(), failed, a_pod("operator-validator"))


@pytest.mark.parametrize(
    ("minutes", "is_gpu_node", "key"), [(60, True, "plugin_offered_never"), (1, True, None), (60, False, None)]
)
def test_a_plugin_that_is_ready_and_never_offered_a_gpu_is_not_well(minutes, is_gpu_node, key):
    pod = a_pod(started_at=NOON - timedelta(minutes=minutes))
    found = by_operand(a_node(is_gpu_node=is_gpu_node), pod)["device-plugin"]

    assert (found.cause.key if found.cause else None) == key


BY_NFD = [[{"key": "feature.node.kubernetes.io/pci-10de.present", "operator": "In", "values": ["true"]}]]


@pytest.mark.parametrize(
    ("given", "is_said"),
    [
        ({}, True),
        ({"allocatable": {"nvidia.com/gpu": 1}}, False),
        ({"is_gpu_node": False}, False),
        ({"gpu_vendor": "amd"}, False),
        ({"labels": {"nvidia.com/gpu.workload.config": "vm-passthrough"}}, False),
    ],
)
def test_gpus_that_no_plugin_is_for_are_told(given, is_said):
    node = a_node(**{"is_gpu_node": True, "labels": {"karpenter.k8s.aws/instance-gpu-name": "t4"}} | given)
    found = operands_on(node, rows([a_daemon_set(node_selector={}, node_affinity=BY_NFD)]))

    assert [row.cause.key for row in found if row.operand == "device-plugin"] == ["no_plugin_selects"] * is_said


def test_a_driver_that_is_asked_for_and_has_no_daemon_set_is_missed():
    policy = DriverObject(kind="ClusterPolicy", name="cluster-policy", version="580.95.05")
    node = a_node(is_gpu_node=True)
    (row,) = operands_on(node, rows([], driver_objects=[policy]))

    assert row.cause.key == "no_driver_made"
    assert (row.desired.version, row.desired.by) == ("580.95.05", "ClusterPolicy cluster-policy")
    assert operands_on(node, rows([], driver_objects=[policy], sees_daemon_sets=False)) == []


def test_amds_plugin_waits_for_the_pod_that_loads_its_module():
    node = a_node(labels={}, gpu_vendor="amd", is_gpu_node=True)
    loading = a_pod("kernel-module", is_ready=False, owner_uid="modules", waiting_reason="CrashLoopBackOff: back-off")
    waiting = a_pod(
        "amd-device-plugin", is_ready=False, phase="Pending", stuck_container="driver-init",
        started_at=NOON - timedelta(hours=1),
    )  # fmt: skip
    done = a_pod("kernel-module", is_ready=False, owner_uid="modules", phase="Succeeded")

    found = {row.operand: row for row in operands_on(node, rows([], [loading, waiting]))}

    assert "kernel module (KMM)" in found["amd-device-plugin"].cause.sentence
    assert "kernel-module" not in {row.operand for row in operands_on(node, rows([], [done, waiting]))}


@pytest.mark.django_db
@pytest.mark.parametrize(("state", "cause"), [("open", "gpu_not_started"), ("resolved", ""), ("confirming", "")])
def test_the_log_of_a_ready_operand_is_a_cause_while_a_finding_misses_its_work(state: str, cause: str):
    node = make.a_node(make.a_cluster())
    pod = make.a_pod(node, operand="driver", gpus=0, is_ready=True, ready_since=NOON - timedelta(hours=1))
    make.a_crash_log(pod, "NVRM: GPU 0000:0a:00.0: RmInitAdapter failed! (0x24:0x72:1568)", read_at=NOON)
    make.a_finding(node.cluster, node=node, rule="allocatable-below-expected", state=state)

    (driver,) = (row for row in read_stack(node, now=NOON).operands if row.operand == "driver")

    assert (driver.cause.key if driver.cause else "") == cause
