"""What a ClusterPolicy says, with the values of the chart of GPU Operator v25.10.1 (gpu-operator, values.yaml)."""

import msgspec
import pytest

from fleet.observer.mirror.rows.driver_object import driver_object_row
from gpu.evictions import MANAGER_LABEL
from gpu.operands import TITLES
from kube.structs import ClusterPolicySeen, GpuClusterSeen, NvidiaDriverSeen

META = {
    "name": "cluster-policy",
    "uid": "uid-of-policy",
    "generation": 2,
    "labels": {"helm.sh/chart": "gpu-operator-v25.10.1"},
}
POLICY = {
    "operator": {"defaultRuntime": "docker", "runtimeClass": "nvidia"},
    "daemonsets": {"updateStrategy": "RollingUpdate", "priorityClassName": "system-node-critical"},
    "driver": {"enabled": True, "repository": "nvcr.io/nvidia", "image": "driver", "version": "580.105.08"},
    "toolkit": {
        "enabled": True,
        "repository": "nvcr.io/nvidia/k8s",
        "image": "container-toolkit",
        "version": "v1.18.1",
    },
    "devicePlugin": {
        "enabled": True,
        "version": "v0.18.1",
        "config": {"name": "time-slicing-config-all", "default": "any"},
    },
    "gfd": {"enabled": True, "version": "v0.18.1"},
    "dcgm": {"enabled": False, "version": "4.4.2-1-ubuntu22.04"},
    "dcgmExporter": {"enabled": True, "version": "4.4.2-4.7.0-distroless", "serviceMonitor": {"enabled": False}},
    "migManager": {"enabled": True, "version": "v0.13.1", "config": {"name": "default-mig-parted-config"}},
    "nodeStatusExporter": {"enabled": False, "version": "v25.10.1"},
    "validator": {"repository": "nvcr.io/nvidia", "image": "gpu-operator", "version": "v25.10.1"},
    "mig": {"strategy": "mixed"},
    "cdi": {"enabled": True, "default": False},
    "sandboxWorkloads": {"enabled": False, "defaultWorkload": "container"},
}
WAITING = {
    "type": "Ready",
    "status": "False",
    "reason": "OperandNotReady",
    "message": "states not ready: [state-driver]",
}


def a_policy(spec: object = POLICY, status: object = None) -> ClusterPolicySeen:
    document = {"metadata": META, "spec": spec, "status": status}
    return msgspec.convert(document, ClusterPolicySeen, strict=False)


def test_a_policy_names_the_version_of_every_operand_it_does_not_switch_off():
    row = driver_object_row(a_policy())

    assert row["version"] == "580.105.08"
    assert row["operand_versions"] == {
        "container-toolkit": "v1.18.1",
        "device-plugin": "v0.18.1",
        "gpu-feature-discovery": "v0.18.1",
        "dcgm-exporter": "4.4.2-4.7.0-distroless",
        "mig-manager": "v0.13.1",
        "operator-validator": "v25.10.1",
    }
    assert set(row["operand_versions"]) <= set(TITLES)


def test_a_policy_says_how_gpus_are_cut_and_shared():
    row = driver_object_row(a_policy())

    assert (row["mig_strategy"], row["uses_cdi"]) == ("mixed", True)
    assert (row["sharing_config"], row["mig_config"]) == ("time-slicing-config-all", "default-mig-parted-config")
    assert row["operator_version"] == "v25.10.1"


def test_what_a_policy_does_not_say_is_blank_and_not_a_guess():
    row = driver_object_row(a_policy({"driver": {"enabled": False}}))

    assert (row["version"], row["operand_versions"], row["mig_strategy"], row["uses_cdi"]) == ("", {}, "", None)


def test_a_policy_without_a_spec_or_status_is_still_one():
    row = driver_object_row(a_policy(None))

    assert (row["kind"], row["state"], row["operand_versions"]) == ("ClusterPolicy", "", {})


def test_a_policy_that_is_not_ready_says_why():
    row = driver_object_row(a_policy(status={"state": "notReady", "namespace": "gpu", "conditions": [WAITING]}))

    assert (row["state"], row["message"]) == ("notReady", "OperandNotReady: states not ready: [state-driver]")


def test_a_gpu_cluster_is_a_driver_object_without_a_driver():
    """As in gpu-operator's api/nvidia/v1alpha1/gpucluster_types.go."""
    document = {
        "metadata": {"name": "gpu-cluster", "uid": "uid-of-gpu-cluster"},
        "spec": {
            "draDriver": {"repository": "nvcr.io/nvidia", "image": "k8s-dra-driver-gpu", "version": "v25.12.0"},
            "dcgmExporter": {"version": "4.6.0-4.8.3-distroless"},
        },
        "status": {"state": "ready", "namespace": "gpu-operator", "conditions": []},
    }

    row = driver_object_row(msgspec.convert(document, GpuClusterSeen))

    assert (row["kind"], row["version"], row["state"]) == ("GPUCluster", "", "ready")
    assert row["operand_versions"] == {"dra-driver": "v25.12.0", "dcgm-exporter-dra": "4.6.0-4.8.3-distroless"}


def test_a_policy_says_whether_nri_and_rdma_are_on():
    row = driver_object_row(a_policy({"cdi": {"enabled": True, "nriPluginEnabled": True}, "driver": {"rdma": {}}}))

    assert (row["uses_cdi"], row["uses_nri"], row["uses_rdma"]) == (True, True, None)
    assert driver_object_row(a_policy({"driver": {"rdma": {"enabled": False}}}))["uses_rdma"] is False


def test_a_policy_says_which_kernel_modules_and_what_is_loaded_beside_them():
    row = driver_object_row(
        a_policy({"driver": {"kernelModuleType": "open"}, "gds": {"enabled": True}, "gdrcopy": {"enabled": False}})
    )

    assert (row["kernel_modules"], row["uses_gds"], row["uses_gdrcopy"]) == ("open", True, False)


def test_an_nvidia_driver_says_them_of_its_own_nodes():
    document = {
        "metadata": {"name": "h200", "uid": "uid-of-h200"},
        "spec": {"kernelModuleType": "proprietary", "gds": {"enabled": True}},
    }

    row = driver_object_row(msgspec.convert(document, NvidiaDriverSeen))

    assert (row["kernel_modules"], row["uses_gds"], row["uses_gdrcopy"]) == ("proprietary", True, None)


@pytest.mark.parametrize(
    ("mig_manager", "read"),
    [
        ({"enabled": True, "config": {"name": "", "default": "all-disabled"}}, "default-mig-parted-config"),
        ({"config": None}, "default-mig-parted-config"),
        (None, "default-mig-parted-config"),
        ({"enabled": True, "config": {"name": "ours"}}, "ours"),
        ({"enabled": False, "config": {"name": "ours"}}, ""),
    ],
)
def test_mig_managers_read_what_the_operator_mounts_for_them(mig_manager, read):
    """The chart's default names none; the operator then makes and mounts its own."""
    assert driver_object_row(a_policy({"migManager": mig_manager}))["mig_config"] == read


@pytest.mark.parametrize(
    ("manager", "label"),
    [
        ({"env": [{"name": "DRAIN_USE_FORCE", "value": "true"}, {"name": MANAGER_LABEL, "value": "x/y"}]}, "x/y"),
        ({"env": [{"name": MANAGER_LABEL, "value": None}]}, ""),
        ({"env": None}, ""),
        (None, ""),
    ],
)
def test_the_label_by_which_the_driver_manager_stops_one_more_is_kept(manager, label):
    document = {"metadata": {"name": "h200", "uid": "uid-of-h200"}, "spec": {"manager": manager}}

    assert driver_object_row(a_policy({"driver": {"manager": manager}}))["manager_label"] == label
    assert driver_object_row(msgspec.convert(document, NvidiaDriverSeen))["manager_label"] == label
