"""What the product answers about objects that people posted of their clusters, read through a real API server."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.models import DriverObject, Node
from gpu.resources import Layout, ResourceKind, resource_lines
from health.stack import NodeStack, OperandOnNode, read_stack
from tests import make
from tests.fleet.recorded import Recorded, observed, seen, units, unread
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
OPERATED = ("ClusterPolicy", "NVIDIADriver")


CLUSTERS = (
    Recorded("plain"),
    Recorded("openshift", OPERATED),
    Recorded("drivers", OPERATED, ("--resource-api", "v1beta1")),
)


@pytest.fixture(scope="module", autouse=True)
def _observed(django_db_setup, django_db_blocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with observed(CLUSTERS, django_db_blocker, tmp_path_factory):
        yield


def stack(node: Node) -> NodeStack:
    return read_stack(node, now=timezone.now())


def operand(node: Node, recording: str, name: str) -> OperandOnNode:
    """That of the recording's own DaemonSet: on the node of another one, other operands are none of its business."""
    return next(row for row in stack(node).operands if row.daemon_set == f"{recording}/{name}")


def test_old_labels_of_openshift_count_slices_under_one_strategy():
    node = seen("ocp-a100")

    assert units(node)[:3] == (None, 14, 0)
    assert (node.gpu_product, node.mig_strategy, node.mig_config) == ("NVIDIA-A100-PCIE-40GB", "single", "all-1g.5gb")
    assert node.driver_version == "550.90.07"
    assert node.gpu_memory_mib is None  # the label is a slice's


def test_gpus_that_could_be_cut_and_are_not_are_whole():
    node = seen("xe9680")

    assert units(node) == (8, 0, 0, 8)
    assert (node.gpu_product, node.mig_strategy, node.sharing) == ("NVIDIA-H100-80GB-HBM3", "", "")
    assert (node.gpu_memory_mib, node.driver_version) == (81_559, "570.133.20")


def test_slices_of_two_profiles_are_counted_beside_what_no_plugin_of_gpus_offers():
    node = seen("rke2-a100")

    assert units(node)[1:] == (10, 0, 2)
    assert "example.com/gpu-count" not in node.capacity


def test_gpus_cut_unequally_under_the_single_strategy_are_told_as_that():
    node = seen("a100-unequal")
    said = page(visiting(make.a_user(role="viewer")), f"/nodes/{node.pk}").text

    assert units(node)[1:] == (0, 0, 0)
    assert node.gpu_product == "NVIDIA-A100-SXM4-80GB"
    assert "this node's GPUs do not all have the same MIG slices" in said


def test_a_label_that_spells_a_profile_otherwise_makes_no_slice_missing():
    node = seen("deepops-a100")

    assert units(node) == (None, 16, 0, 8)
    assert node.gpus_missing == 0


def test_more_gpus_than_the_labeller_counts_are_shares():
    node = seen("g5-sliced")

    assert units(node) == (None, 0, 12, 1)
    assert (node.sharing, node.sharing_replicas, node.gpu_product) == ("shared", 12, "NVIDIA-A10G")


def test_time_slices_are_shares_of_the_product_without_its_suffix():
    node = seen("eks-sliced")

    assert units(node) == (None, 0, 8, 1)
    assert (node.sharing, node.sharing_replicas, node.gpu_product) == ("time-slicing", 8, "Tesla-T4")


def test_renamed_time_slices_are_shares_and_the_old_name_is_nothing():
    node = seen("nuc")

    assert units(node) == (None, 0, 4, 1)
    assert (node.sharing, node.driver_version) == ("time-slicing", "515.48.07")


def test_mps_is_not_time_slicing():
    node = seen("rtx3090")

    assert units(node) == (None, 0, 16, 8)
    assert (node.sharing, node.sharing_replicas) == ("mps", 2)


def test_shares_that_nothing_explains_are_shares_all_the_same():
    assert seen("bottlerocket-p5").shares_allocatable == 128


def test_what_virtual_machines_get_is_no_gpu_for_pods():
    node = seen("harvester-m6")
    lines = resource_lines(node.expected, node.capacity, node.allocatable, node.requested, Layout.read(node.layout))

    assert units(node)[:3] == (0, 0, 0)
    assert [(line.name, line.kind) for line in lines] == [
        ("nvidia.com/ARIEL_DEVICE_24_FUNCTION_3", ResourceKind.VIRTUAL)
    ]


def test_clients_of_gkes_time_sharing_are_shares_of_one_gpu():
    node = seen("gke-l4-shared")

    assert units(node) == (None, 0, 4, 1)
    assert (node.sharing, node.sharing_replicas, node.gpu_product) == ("time-slicing", 4, "nvidia-l4")


def test_partitions_of_gke_are_slices_of_one_gpu():
    node = seen("gke-a100-mig")

    assert units(node) == (None, 7, 0, 1)
    assert (node.mig_strategy, node.gpu_product) == ("single", "nvidia-tesla-a100")


@pytest.mark.parametrize(("name", "product"), [("gke-k80", "nvidia-tesla-k80"), ("karpenter-g4dn", "t4")])
def test_a_machine_with_gpus_that_nothing_offers_is_a_gpu_node(name, product):
    node = seen(name)

    assert (node.is_gpu_node, node.gpu_vendor, node.gpu_product) == (True, "nvidia", product)
    assert node.gpu_allocatable is None


def test_no_driver_label_that_never_was_is_said_to_be_gone():
    driver = stack(seen("gke-l4-shared")).driver

    assert "is gone" not in " ".join(each.note for each in driver.sources)
    assert "No label has shown the version since the watch began" in " ".join(each.note for each in driver.sources)


def test_a_gpu_that_is_sick_when_it_is_first_seen_is_missed():
    node = seen("three-gpus")

    assert (node.gpu_capacity, node.gpu_allocatable, node.gpus_missing) == (3, 2, 1)


def test_a_plugin_without_any_label_is_enough_for_a_gpu():
    assert units(seen("homelab")) == (1, 0, 0, 1)


def test_amds_dra_driver_offers_whole_gpus_and_partitions():
    node = seen("mi300x-dra")

    assert units(node)[:3] == (1, 2, 0)
    assert (node.gpu_vendor, node.gpu_product) == ("amd", "AMD_Instinct_MI300X_OAM")
    assert {(gpu.index, gpu.memory_mib) for gpu in node.gpus.all()} == {(48, 196_592), (32, 196_592)}


def test_what_runs_on_amds_gpus_is_read_from_the_slice_and_not_from_a_label():
    said = {each.by: (each.version, each.note) for each in stack(seen("mi300x-dra")).driver.sources}

    assert said["ResourceSlice of the node"] == ("6.16.6", "")
    assert said["label of the node"] == ("", "It says none.")


def test_an_old_slice_tells_product_and_driver_as_nvidia_writes_it():
    node = seen("gb200-dra")

    assert units(node) == (1, 0, 0, 1)
    assert (node.gpu_product, node.driver_version) == ("NVIDIA-GB200", "570.124.06")
    assert stack(node).driver.disagreement == ""


def test_a_board_that_is_offered_beside_its_slice_is_one_board():
    node = seen("aks-migpool")

    assert units(node)[1:] == (1, 0, 1)
    assert node.driver_version == "580.95.05"


def test_an_intel_gpu_that_nothing_offers_is_seen():
    assert (seen("nuc-intel").is_gpu_node, seen("nuc-intel").gpu_vendor) == (True, "intel")


def test_an_intel_gpu_that_is_offered_five_times_is_shared():
    node = seen("igpu-shared")

    assert units(node) == (None, 0, 5, 1)
    assert (node.sharing, node.sharing_replicas) == ("shared", 5)


def test_gaudi_is_counted_by_its_own_resource():
    node = seen("gaudi")

    assert (units(node), node.gpu_vendor) == ((8, 0, 0, 8), "habana")


@pytest.mark.parametrize(
    ("name", "recording", "daemon_set", "key", "words"),
    [
        ("debian-a100", "driver-image-for-debian", "nvidia-driver-daemonset", "image_no_such_tag",
         "Image does not exist: nvcr.io/nvidia/driver:550.90.07-debian12."),
        ("debian-a100", "driver-image-for-debian", "nvidia-container-toolkit-daemonset", "waits",
         "Waits for the driver, which is not ready on this node."),
        ("no-dns", "driver-registry-unresolved", "nvidia-driver-daemonset", "image_registry_unknown",
         "Name of the registry does not resolve"),
        ("not-loadable", "driver-not-loadable", "nvidia-driver-daemonset", "not_loadable",
         "Driver module does not load into kernel 5.4.0-205-generic."),
        ("microk8s", "driver-manager-crashes", "nvidia-driver-daemonset", "crashed",
         "Container k8s-driver-manager keeps crashing (CrashLoopBackOff, 21 restarts so far)."),
        ("no-smi", "validator-toolkit-127", "nvidia-operator-validator", "toolkit_validation",
         "A container with the NVIDIA runtime does not see the driver"),
        ("nvdp", "plugin-chart", "nvdp-nvidia-device-plugin", "sharing_config",
         "Sharing configuration is not readable"),
        ("paused", "paused-by-an-upgrade", "nvidia-device-plugin-daemonset", "paused",
         "nvidia.com/gpu.deploy.device-plugin=paused-for-driver-upgrade"),
        ("roks", "roks-labels-empty", "nvidia-device-plugin-daemonset", "label_empty",
         "The label nvidia.com/gpu.deploy.device-plugin has no value."),
    ],
)  # fmt: skip
def test_an_operand_that_does_not_run_says_why(name, recording, daemon_set, key, words):
    row = operand(seen(name), recording, daemon_set)

    assert row.cause is not None
    assert (row.is_ready, row.cause.key) == (False, key)
    assert words in row.reason


def test_a_precompiled_driver_that_nobody_built_names_the_kernel():
    recording = "driver-precompiled-missing"
    row = operand(seen("precompiled"), recording, "nvidia-driver-daemonset-5.15.0-100-generic-ubuntu22.04")

    assert row.cause.key == "image_no_such_tag"
    assert "no precompiled driver for kernel 5.15.0-100-generic" in row.cause.summary


def test_the_log_of_a_driver_tells_of_missing_headers_before_its_clean_up():
    node = seen("no-headers")
    said = ("Could not resolve Linux kernel version", "Resolving Linux kernel version...",
            "Stopping NVIDIA persistence daemon...", "Unmounting NVIDIA driver rootfs...")  # fmt: skip
    make.a_crash_log(node.cluster.pods.get(node_name=node.name), *said)

    row = operand(node, "driver-kernel-headers", "nvidia-driver-daemonset")

    assert (row.cause.key, row.restarts) == ("kernel_headers", 1106)
    assert "4.15.0-115-generic" in row.reason


def test_the_charts_daemon_sets_are_told_apart_by_their_names():
    operands = {row.daemon_set.rpartition("plugin")[2]: row.operand for row in stack(seen("nvdp")).operands}

    assert operands["-gpu-feature-discovery"] == "gpu-feature-discovery"
    assert operands["-mps-control-daemon"] == "mps-control-daemon"
    assert operands[""] == "device-plugin"


def test_openshifts_driver_is_found_by_its_system_and_its_digest_tells_no_version():
    node = seen("worker-gpu")
    found = stack(node)
    row = next(row for row in found.operands if row.operand == "driver")

    assert (row.cause.key, row.restarts) == ("kernel_headers", 3)
    assert found.driver.desired_by == "ClusterPolicy gpu-cluster-policy"
    assert "a digest, which has no version" in found.driver.sources[1].note
    assert (node.container_runtime.partition(":")[0], node.upgrade_state) == ("cri-o", "upgrade-required")


def test_the_cluster_page_of_openshift_knows_the_operator_by_what_it_was_installed_from():
    said = page(visiting(make.a_user(role="viewer")), f"/clusters/{seen('worker-gpu').cluster_id}").text

    assert "ClusterPolicy: one driver for all nodes" in said
    assert "24.6.1" in said
    assert "Deployment operator-hub/gpu-operator" in said


def test_drivers_that_select_one_node_both_ask_for_nothing_there():
    found = stack(seen("gold")).driver

    assert (found.desired, found.desired_by, found.running) == ("", "", "570.211.01")
    assert found.sources[0].by == "NVIDIADriver default and NVIDIADriver nvd-gold, which all select this node"
    assert DriverObject.objects.get(name="default").message.startswith("ConflictingNodeSelector")


def test_a_driver_that_the_cloud_installed_is_observed():
    node = seen("aks-host-driver")
    found = stack(node)

    assert found.driver.is_pre_installed
    assert (node.driver_version, node.capacity_type) == ("550.144.03", "spot")
    assert [row.cause.key for row in found.operands if row.operand == "driver"] == ["pre_installed"]


def test_the_operators_version_is_read_from_its_chart():
    said = page(visiting(make.a_user(role="viewer")), f"/clusters/{seen('gold').cluster_id}").text

    assert "26.3.1" in said
    assert "NVIDIADriver: a driver for each group of nodes" in said


def test_every_recording_is_read():
    assert unread(CLUSTERS) == set()
