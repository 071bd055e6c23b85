"""What is said of the GPU stack of nodes that people posted: which part does not run, and why."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.models import Node
from health.stack import NodeStack, OperandOnNode, read_stack
from health.stack.causes import Weight
from tests import make
from tests.fleet.recorded import Recorded, observed, seen, unread
from tests.health.logs import logged
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
OPERATED = ("ClusterPolicy", "NVIDIADriver")
CLUSTERS = (
    Recorded("stacks"),
    Recorded("driver-off", OPERATED),
    Recorded("operator-down", OPERATED),
    Recorded("no-operator"),
)


@pytest.fixture(scope="module", autouse=True)
def _observed(django_db_setup, django_db_blocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with observed(CLUSTERS, django_db_blocker, tmp_path_factory):
        yield


def stack(node: Node) -> NodeStack:
    return read_stack(node, now=timezone.now())


def of(node: Node, operand: str) -> OperandOnNode:
    """Those of other recordings' DaemonSets are none of the node's business."""
    recording = node.labels["example.com/recording"]
    rows = [row for row in stack(node).operands if row.operand == operand]
    mine = [row for row in rows if f"{row.pod or row.daemon_set}/".startswith(f"{recording}/")]
    return (mine or rows)[0]


@pytest.mark.parametrize(
    ("name", "operand", "key", "weight"),
    [
        ("okd-scos", "driver", "image_no_such_tag", Weight.WRONG),
        ("exporter-oom", "dcgm-exporter", "out_of_memory", Weight.WRONG),
        ("compiles", "driver", "not_ready_yet", Weight.WAITING),
        ("mismatch", "operator-validator", "library_mismatch", Weight.WRONG),
        ("mismatch", "driver", "pre_installed", Weight.CHOSEN),
        ("kops-containerd", "device-plugin", "no_runtime_handler", Weight.WRONG),
        ("rke2-crio", "device-plugin", "no_runtime_handler", Weight.WRONG),
        ("tensor", "device-plugin", "plugin_offered_never", Weight.WRONG),
        ("present-false", "device-plugin", "taken_for_none", Weight.WRONG),
        ("passthrough", "driver", "for_machines", Weight.CHOSEN),
        ("poc01", "operator-validator", "cuda_validation", Weight.WRONG),
        ("poc01", "cuda-test", "crashed", Weight.WRONG),
        ("peermem", "driver", "driver_script", Weight.WRONG),
        ("mito26", "driver", "mofed_validation", Weight.WRONG),
        ("mito26", "container-toolkit", "waits", Weight.WAITING),
        ("ocp-refuses", "dcgm-exporter", "cannot_be_made", Weight.WRONG),
        ("no-plugin-here", "device-plugin", "no_plugin_selects", Weight.WRONG),
        ("gke-ubuntu", "driver-installer", "crashed", Weight.WRONG),
        ("mig-fails", "mig-manager", "mig_failed", Weight.WRONG),
        ("operator-down", "driver", "no_driver_made", Weight.WRONG),
        ("hostile", "driver", "stuck", Weight.WRONG),
        ("all-held", "operator-validator", "plugin_validation", Weight.WRONG),
        ("all-held", "plugin-test", "no_gpu_free", Weight.WRONG),
        ("no-hotplug", "driver", "mount", Weight.WRONG),
    ],
)
def test_what_does_not_run_says_why(name, operand, key, weight):
    cause = of(seen(name), operand).cause

    assert cause is not None
    assert (cause.key, cause.weight) == (key, weight)


@pytest.mark.parametrize(
    ("name", "operand", "container", "lines", "key"),
    [
        ("poc01", "cuda-test", "cuda-validation",
         ["Failed to allocate device vector A (error code system not yet initialized)!",
          "[Vector addition of 50000 elements]"], "cuda_no_fabric"),
        ("talos-1", "driver", "nvidia-driver-ctr",
         ["E: Unable to locate package linux-objects-nvidia-535-server-6.1.51-talos",
          "E: Couldn't find any package by glob 'linux-objects-nvidia-535-server-6.1.51-talos'",
          "E: Unable to locate package linux-modules-nvidia-535-server-6.1.51-talos",
          "Stopping NVIDIA persistence daemon...", "Unloading NVIDIA driver kernel modules..."], "no_precompiled"),
        ("in-use", "driver", "k8s-driver-manager",
         ["Unloading NVIDIA driver kernel modules...",
          "Could not unload NVIDIA driver kernel modules, driver is in use",
          "Auto drain of the node in-use is disabled by the upgrade policy"], "driver_in_use"),
        ("rke2-toolkit", "container-toolkit", "nvidia-container-toolkit-ctr",
         ['level=fatal msg="Error: unable to restart containerd: unable to signal containerd: unable to dial"',
          'level=info msg="Shutting Down"',
          'level=error msg="error running nvidia-toolkit: unable to setup runtime: exit status 1"'], "runtime_restart"),
        ("gke-no-driver", "device-plugin", "nvidia-driver-installer",
         ["0     0    0     0    0     0      0      0 --:--:-- --:--:-- --:--:--     0",
          "GPU driver auto installation is disabled.",
          "Waiting for GPU driver libraries to be available."], "gke_installs_no_driver"),
    ],
)  # fmt: skip
def test_what_crashes_says_why_in_its_log(name, operand, container, lines, key):
    node = seen(name)
    pod = node.cluster.pods.get(node_name=name, operand=operand)
    assert pod.stuck_container == container
    make.a_crash_log(pod, *lines)

    assert of(node, operand).cause.key == key


def test_on_gke_only_the_plugin_for_the_nodes_system_is_of_it():
    found = {row.daemon_set or row.pod: row for row in stack(seen("gke-cos")).operands}

    assert [name for name in found if name.startswith("gke-cos/nvidia")] == [
        "gke-cos/nvidia-gpu-device-plugin-small-cos"
    ]
    assert found["gke-cos/nvidia-gpu-device-plugin-small-cos"].cause is None
    assert found["gke-cos/dcgm-exporter"].version == "4.4.1-4.6.0-gke.17"


def test_the_validators_own_pods_are_no_tenants():
    node = seen("poc01")

    assert node.cluster.pods.filter(node_name="poc01", is_tenant=True).count() == 0
    assert [pod.name for pod in seen("all-held").pods.tenants()] == ["gpu-demo-64894cf985-ff8sj"]
    assert "plugin-test" not in {row.operand for row in stack(node).operands}


def test_gpus_are_seen_by_their_pci_class():
    assert (seen("nfd-by-class").is_gpu_node, seen("nfd-by-class").gpu_vendor) == (True, "nvidia")
    assert seen("nfd-of-old").gpu_vendor == "nvidia"
    assert not seen("nfd-no-gpu").is_gpu_node  # a bridge of NVIDIA's, a card of Matrox's


@pytest.mark.parametrize(
    ("name", "product", "memory_mib"),
    [("eks-auto", "t4", 16_384), ("aks-nap", "T4", None), ("coreweave", "A100_NVLINK_80GB", None)],
)
def test_what_a_cloud_says_of_its_machines_is_read(name, product, memory_mib):
    node = seen(name)

    assert (node.is_gpu_node, node.gpu_vendor, node.gpu_product) == (True, "nvidia", product)
    assert node.gpu_memory_mib == memory_mib


def test_a_driver_that_the_policy_leaves_to_the_nodes_is_asked_for_by_nobody():
    found = stack(seen("al2023")).driver

    assert (found.is_pre_installed, found.desired, found.running) == (True, "", "580.95.05")
    assert found.disagreement == ""


def test_a_node_that_names_no_driver_yet_is_told_that_nobody_installs_one():
    assert of(seen("al2023-new"), "driver").cause.key == "no_driver_managed"


def test_the_cluster_page_says_that_the_policy_installs_no_driver():
    said = page(visiting(make.a_user(role="viewer")), f"/clusters/{seen('al2023').cluster_id}").text

    assert "The ClusterPolicy installs no driver" in said
    assert "one driver for all nodes" not in said
    assert "left to the nodes" in said


def test_what_crashes_beside_the_driver_is_named():
    row = of(seen("peermem"), "driver")

    assert "Container nvidia-peermem-ctr keeps crashing" in row.reason
    assert row.cause.quote.endswith("RHEL_VERSION: unbound variable")


def test_a_driver_installer_is_of_its_own_version_and_no_driver():
    node = seen("gke-ubuntu")

    assert of(node, "driver-installer").version == "fixed"
    assert stack(node).driver.pod_image == ""


def test_an_operator_that_does_not_run_is_said_first():
    said = page(visiting(make.a_user(role="viewer")), f"/clusters/{seen('operator-down').cluster_id}").text

    assert "The GPU operator does not run (Deployment gpu-operator-oom/gpu-operator, 0 of 1 pods ready)" in said
    assert "it ended with OOMKilled, exit code 137" in said


def test_what_nobody_means_is_shown_as_it_is():
    node = seen("hostile")
    said = page(visiting(make.a_user(role="viewer")), f"/nodes/{node.pk}").text

    assert node.upgrade_state == "upgrade-of-tomorrow"
    assert "upgrade-of-tomorrow" in said
    assert "hostile-stack/odd-affinity" not in {row.daemon_set for row in stack(node).operands}


def test_a_plugin_without_an_operator_lacks_nothing():
    rows = [row for row in stack(seen("labelled-by-hand")).operands if row.pod or "nvdp" in row.daemon_set]

    assert [(row.operand, row.is_ready, row.cause) for row in rows] == [("device-plugin", True, None)]
    assert all(row.operand != "driver" for row in stack(seen("labelled-by-hand")).operands)
    said = page(visiting(make.a_user(role="viewer")), f"/nodes/{seen('labelled-by-hand').pk}").text
    assert "operator has not labelled" not in said


@pytest.mark.parametrize(
    ("name", "operand", "lines", "key"),
    [
        ("dra-now", "dra-driver", ["Error: error creating driver: empty cluster UUID, refusing to start"],
         "dra_no_cluster_uuid"),
        ("black-knight-03", "amd-device-plugin", ["panic: runtime error: index out of range [0]"], "crashed"),
        ("controller-1", "intel-gpu-plugin", logged("intel-no-drm"), "intel_no_driver"),
    ],
)  # fmt: skip
def test_operands_of_every_vendor_have_causes(name, operand, lines, key):
    node = seen(name)
    row = next(row for row in stack(node).operands if row.pod)
    assert (row.operand, row.cause.key) == (operand, "crashed")
    make.a_crash_log(node.cluster.pods.get(node_name=name), *lines)

    row = next(row for row in stack(node).operands if row.pod)
    assert row.cause.key == key
    assert row.cause.quote in [line.strip() for line in lines]
    assert "ClusterPolicy" not in row.cause.action


def test_a_dra_driver_that_publishes_no_device_says_so():
    row = next(row for row in stack(seen("dra-empty")).operands if row.pod)

    assert (row.operand, row.is_ready, row.cause.key) == ("dra-driver", True, "dra_publishes_nothing")


def test_every_recording_is_read():
    assert unread(CLUSTERS) == set()
