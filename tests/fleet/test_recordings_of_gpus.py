"""What is offered of GPUs, and who has it, on objects that people published of their clusters."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.allocation.gpu_holders import allocations_on
from fleet.models import Node
from fleet.queries import lines_of
from tests import make
from tests.fleet.recorded import Recorded, observed, seen, units, unread
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db
CLUSTERS = (Recorded("gpus"), Recorded("gpus-v1beta1", flags=("--resource-api", "v1beta1")))


@pytest.fixture(scope="module", autouse=True)
def _observed(django_db_setup, django_db_blocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with observed(CLUSTERS, django_db_blocker, tmp_path_factory):
        yield


def said_of(name: str) -> str:
    return page(visiting(make.a_user(role="viewer")), f"/nodes/{seen(name).pk}").text


def who(node: Node) -> dict[str, list[str]]:
    """By the board's UUID: the pods on it."""
    boards = allocations_on([node], now=timezone.now())[node.pk].boards
    return {board.uuid: [allocation.pod.name for allocation in board.allocations] for board in boards}


def differences(node: Node) -> list[str]:
    return [sentence for line in lines_of(node) for sentence in line.differences]


def test_what_is_only_called_like_a_gpu_is_none():
    node = seen("memory-as-resource")

    assert units(node) == (1, 0, 0, 1)
    assert [line.name for line in lines_of(node)] == ["nvidia.com/gpu"]


def test_nics_that_nvidia_names_as_its_own_are_no_gpus():
    assert units(seen("dgx-nics")) == (8, 0, 0, 8)
    assert set(seen("dgx-nics").capacity) == {"nvidia.com/gpu"}
    assert not seen("nics-only").is_gpu_node


def test_volcanos_vgpus_are_shares_of_the_gpus_that_the_labels_count():
    node = seen("volcano-vgpu")

    assert units(node) == (0, 0, 80, 8)
    assert (node.sharing, node.gpu_product) == ("hami", "NVIDIA-A100-SXM4-80GB")


def test_units_of_memory_are_shares_and_said_to_be_units():
    node = seen("aliyun-v100")

    assert (node.is_gpu_node, node.gpu_vendor, node.sharing) == (True, "nvidia", "memory")
    assert (units(node), node.shares_allocated) == ((None, 0, 248, 0), 8)
    assert "8 units of GPU memory" in said_of("aliyun-v100")


def test_a_name_that_a_person_gave_a_device_for_virtual_machines_is_one():
    lines = lines_of(seen("kubevirt-1660"))

    assert [(line.name, line.kind) for line in lines] == [("nvidia.com/gpu_geforce_1660", "virtual")]


def test_a_board_given_to_a_virtual_machine_is_no_gpu_for_pods():
    node = seen("kubevirt-1050")

    assert (units(node)[0], node.gpu_allocated) == (0, 0)
    assert "1 device for virtual machines" in said_of("kubevirt-1050")


@pytest.mark.parametrize(
    ("name", "vendor"), [("aks-nc6s-v3", "nvidia"), ("mi300x-vf", "amd"), ("rx580", "amd"), ("mi300x-cpx-lost", "amd")]
)
def test_gpus_that_nothing_offers_are_seen_by_their_labels(name, vendor):
    node = seen(name)

    assert (node.is_gpu_node, node.gpu_vendor, node.gpu_allocatable or 0) == (True, vendor, 0)


def test_the_memory_of_a_partition_is_not_its_boards():
    node = seen("mi355x-dpx")

    assert units(node) == (None, 16, 0, 8)
    assert (node.gpu_memory_mib, node.gpu_product) == (None, "AMD_Instinct_MI355X_OAM")
    assert seen("mi300x-vf").gpu_memory_mib == 192 * 1024
    assert "all of a GPU's partitions share its whole memory" in said_of("mi355x-dpx")


def test_one_gpu_of_intels_for_two_pods_is_two_shares():
    node = seen("achilles")

    assert (units(node), node.sharing) == ((None, 0, 2, 1), "shared")


def test_slices_without_any_label_are_counted_by_profile():
    assert units(seen("h100-nvl")) == (0, 4, 0, 1)


def test_gpus_beside_those_that_are_cut_are_whole():
    node = seen("half-cut")

    assert (units(node), node.mig_strategy) == ((6, 6, 0, 8), "mixed")


def test_intels_gpus_are_told_apart_by_their_addresses():
    node = seen("intel-dra")

    assert (units(node), node.gpu_allocated, node.gpu_product) == ((2, 0, 0, 2), 1, "Arc-B60")
    assert who(node) == {"0000:00:02.0": [], "0000:04:00.0": ["test-claim"]}
    assert [gpu.product for gpu in node.gpus.all()] == ["", "Arc-B60"]


def test_gpus_that_only_have_names_are_told_apart_by_those():
    assert (units(seen("gaudi-dra")), seen("gaudi-dra").gpu_product) == ((2, 0, 0, 2), "Gaudi2")
    assert who(seen("gaudi-dra-beta")) == {"0000-43-00-0-0x1020": [], "0000-44-00-0-0x1020": ["test-inline-claim"]}


def test_who_only_looks_takes_no_gpu():
    node = seen("arc-a770")

    assert (node.gpu_allocated, node.gpu_product, node.gpu_memory_mib) == (0, "Arc-A770", 16_288)
    assert who(node) == {"0000-03-00-0-0x56a0": ["monitor"]}


def test_gpus_of_a_plugin_and_of_a_dra_driver_are_the_same_and_taken_by_both():
    node = seen("eks-p5-both")

    assert (units(node), node.gpu_allocated) == ((2, 0, 0, 2), 2)
    assert [sentence.startswith("The same GPUs are also offered as") for sentence in differences(node)] == [True, True]
    assert "2 of 2 taken" in said_of("eks-p5-both")


def test_a_virtual_gpu_is_a_gpu_in_its_machine():
    node = seen("vks-a100-8c")

    assert (units(node), node.gpu_product, node.gpu_memory_mib) == ((1, 0, 0, 1), "GRID-A100-8C", 8192)


def test_a_slice_that_is_cut_when_it_is_claimed_takes_its_board():
    node = seen("h100-dynamic-mig")

    assert (units(node), node.gpu_allocated, differences(node)) == ((2, 0, 0, 2), 1, [])
    assert [len(pods) for pods in who(node).values()] == [2, 0]


def test_a_board_that_is_offered_in_slices_only_is_a_board():
    node = seen("a30-dynamic-mig")

    assert (units(node), node.gpu_product, node.driver_version) == ((1, 0, 0, 1), "NVIDIA-A30", "595.58.03")


def test_an_extended_resource_that_dra_satisfies_is_the_claims_device():
    node = seen("dra-extended")

    assert (units(node), node.gpu_allocated, differences(node)) == ((2, 0, 0, 2), 1, [])
    assert list(who(node).values()) == [[], ["vectoradd"]]


def test_a_board_claimed_for_a_virtual_machine_is_taken():
    node = seen("dra-vfio")

    assert (units(node), node.gpu_capacity, node.gpu_allocated) == ((1, 0, 0, 2), 2, 1)
    assert list(who(node).values()) == [["virt-launcher-windows-4c2sd"], []]


@pytest.mark.parametrize(
    ("name", "resources", "product"),
    [
        ("hami-416a100", ((None, 0, 20, 2), 10), "NVIDIA-A100-PCIE-40GB"),
        ("hami-v100", ((None, 0, 20, 2), 10), "Tesla-V100-PCIE-32GB"),
        ("hami-h20", ((None, 0, 30, 3), 10), "NVIDIA-H20-3e"),
        ("volcano-1080ti", ((None, 0, 8, 2), 4), "NVIDIA-GeForce-GTX-1080-Ti"),
    ],
)
def test_vgpus_of_hami_are_shares_of_the_boards_that_it_registers(name, resources, product):
    node = seen(name)

    assert ((units(node), node.sharing_replicas), node.gpu_product) == (resources, product)
    assert node.sharing == "hami"
    assert all(uuid.startswith("GPU-") for uuid in who(node))


def test_a_pod_is_on_the_gpu_that_hamis_scheduler_wrote_down():
    node = seen("hami-v100")

    assert node.shares_allocated == 1
    assert who(node)["GPU-0fc3eda5-e98b-a25b-5b0d-cf5c855d1448"] == ["hami-task"]
    assert "named by the scheduler" in said_of("hami-v100")


def test_memory_that_hami_scales_is_not_the_boards():
    assert seen("hami-h20").gpu_memory_mib == 143_771


def test_gpus_that_are_cut_and_still_named_as_whole_are_not_counted():
    node = seen("cerit-a100")

    assert units(node) == (0, 10, 0, 2)
    assert "2 GPUs offered as whole, but partitioned into slices" in " ".join(differences(node))
    assert [line.free for line in lines_of(node) if line.name == "nvidia.com/gpu"] == [0]
    assert "0 of 0 taken" in said_of("cerit-a100")


def test_pods_with_parts_of_a_gpu_are_on_the_one_that_is_held_for_them():
    node = seen("kai-a100")
    pods = ["gpu-reservation-kai-a100-55dst", "tinyllama-0", "tinyllama-1"]

    assert (units(node), node.gpu_allocated) == ((2, 0, 0, 2), 1)
    assert who(node)["GPU-6cf3e0bb-4a7c-2b63-0e3a-7b0c52a4d001"] == pods
    assert [pod.name for pod in node.pods.tenants()] == pods
    assert "a part of a GPU that another pod holds for this pod" in said_of("kai-a100")


def test_renamed_shares_that_the_labeller_was_not_told_of_are_shares():
    node = seen("renamed-not-told")

    assert (units(node), node.sharing) == ((0, 0, 50, 1), "shared")


def test_gpus_of_amd_that_are_cut_unequally_are_counted_by_their_names():
    node = seen("mi300x-mixed")

    assert (units(node)[:3], node.gpu_vendor) == ((5, 24, 0), "amd")


def test_odd_spellings_cost_what_they_spell():
    node = seen("odd-spellings")

    assert (units(node), node.gpu_allocated, node.gpu_memory_mib) == ((8, 0, 0, 8), 2, None)
    assert (node.sharing, node.mig_strategy, node.gpu_product) == ("", "", "NVIDIA-H100-80GB-HBM3")


def test_devices_that_say_next_to_nothing_are_gpus_and_unknown_ones_are_none():
    node = seen("odd-devices")

    assert units(node) == (2, 0, 0, 2)
    assert list(who(node)) == ["gpu-0", "gpu-2"]


def test_every_recording_is_read():
    assert unread(CLUSTERS) == set()
