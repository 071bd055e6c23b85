"""What the product answers about nodes in the words of many tools, each as somebody posted them."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from fleet.allocation.counters import recount
from fleet.allocation.tally import read_alike, tally
from fleet.models import Cluster, Node
from fleet.observer.persistence.overdue_mig_changes import note_overdue
from fleet.queries import lines_of
from fleet.web.states import state_of
from health.evaluation import evaluation_round
from health.models import Finding
from tests import make
from tests.fleet.recorded import Recorded, observed, seen, units, unread
from tests.pages import page, visiting
from tests.reports import told

pytestmark = pytest.mark.django_db
CLUSTERS = (Recorded("nodes"),)


@pytest.fixture(scope="module", autouse=True)
def _observed(django_db_setup, django_db_blocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with observed(CLUSTERS, django_db_blocker, tmp_path_factory):
        yield


def said_of(name: str) -> str:
    return page(visiting(make.a_user(role="viewer")), f"/nodes/{seen(name).pk}").text


def test_a_node_whose_mig_layout_is_changed_says_to_which_and_misses_nothing():
    node = seen("k3s-a100-pending")
    state = state_of(node)

    assert (state.word, node.gpus_missing, node.missing_in_words) == ("reconfiguring", 0, "")
    assert state.reason.startswith("The MIG manager is changing its MIG layout to all-1g.5gb, seen since 20")
    assert state.since == node.mig_changing_since
    assert [line.missing for line in lines_of(node)] == [0]
    assert "4 GPUs unavailable while the MIG manager changes the layout" in said_of("k3s-a100-pending")
    assert "It is unknown which of these GPUs" not in said_of("k3s-a100-pending")


def test_a_node_that_reboots_for_its_layout_is_not_called_silent():
    state = state_of(seen("dgx-rebooting"))

    assert state.word == "reconfiguring"
    assert state.reason.startswith("The MIG manager reboots the node to change its MIG layout to all-balanced")


def test_what_is_being_cut_anew_is_in_no_sum_of_what_is_missing():
    nodes = Node.objects.filter(name__in=["k3s-a100-pending", "dgx-rebooting"])

    for cluster in Cluster.objects.all():
        Node.objects.filter(cluster=cluster).exclude(pk__in=nodes).delete()
        recount(cluster.pk)
    gpus = tally(read_alike()).gpus

    assert (gpus.expected, gpus.missing) == (12, 0)


def test_a_layout_that_is_never_done_is_found_and_its_gpus_are_missing_again():
    node = seen("k3s-a100-pending")
    late = node.mig_changing_since + timedelta(minutes=21)
    epoch = node.cluster.observer.epoch

    assert note_overdue(node.cluster_id, epoch=epoch, now=node.mig_changing_since + timedelta(minutes=19)) == 0
    assert note_overdue(node.cluster_id, epoch=epoch, now=late) == 2
    node.cluster.bookmarks.update(last_seen_at=late)
    evaluation_round.evaluate_cluster(node.cluster, now=late)

    found = Finding.objects.get(rule="mig-change-stuck", node=node)
    assert found.opened_at == late
    since = f"{node.mig_changing_since:%Y-%m-%d %H:%M:%S} UTC"
    assert "Requested layout: all-1g.5gb" in told(found)
    assert f"Since: {since}" in told(found)
    assert "Missing: 4 GPUs" in told(found)
    assert seen("k3s-a100-pending").gpus_missing == 4
    assert state_of(seen("k3s-a100-pending")).word == "4 of 4 GPUs missing, 1 critical finding"


def test_the_gpu_that_amds_exporter_labels_is_named():
    state = state_of(seen("mi300x-ecc"))

    assert state.word == "2 of 8 GPUs missing"
    assert state.reason == (
        "GPU 3: AMD's metrics exporter reports it as unhealthy. GPU 11: AMD's metrics exporter reports it as unhealthy."
    )
    assert "no source names it" not in said_of("mi300x-ecc")


def test_a_finding_names_the_gpu_as_well():
    node = seen("mi300x-ecc")

    evaluation_round.evaluate_cluster(node.cluster, now=timezone.now())

    assert "GPU 3: AMD's metrics exporter" in told(Finding.objects.get(node=node))


def test_a_board_that_is_bound_to_vfio_is_one_for_virtual_machines():
    node = seen("vm-host")

    assert (units(node), node.is_gpu_node, node.gpu_vendor) == ((None, 0, 0, 1), True, "nvidia")
    assert [(line.name, line.kind, line.requested) for line in lines_of(node)] == [
        ("gpu.nvidia.com/vfio", "virtual", 1)
    ]
    assert "Devices for virtual machines 1 of 1 taken" in said_of("vm-host")
    assert "Now nobody" not in said_of("vm-host")
    assert "This node has never offered a GPU resource since the watch began" not in said_of("vm-host")


@pytest.mark.parametrize(("name", "mib"), [("ocp410-t4", 15_360), ("gke-a100-bytes", 40_536)])
def test_memory_that_is_labelled_in_bytes_is_told_in_mib(name, mib):
    assert seen(name).gpu_memory_mib == mib


def test_slices_that_no_label_explains_are_cut_under_mixed():
    node = seen("a100-no-labels")

    assert (units(node), node.mig_strategy) == ((0, 3, 0, 1), "mixed")


N, A, H, X = "nvidia", "amd", "habana", "intel"


@pytest.mark.parametrize(
    ("name", "resources", "vendor", "product", "mib"),
    [
        ("ack-p100", (1, 0, 0, 1), N, "Tesla-P100-PCIE-16GB", 16_276),
        ("ack-a10-no-plugin", (None, 0, 0, 2), N, "NVIDIA-A10", 23_028),
        ("doks-h100", (None, 0, 0, 0), N, "h100", None),
        ("doks-mi300x", (None, 0, 0, 0), A, "mi300x", None),
        ("coreweave-h100", (None, 0, 0, 8), N, "H100_NVLINK_80GB", None),
        ("karpenter-p5", (8, 0, 0, 8), N, "h100", 81_920),
        ("gke-dra-h100", (None, 0, 0, 8), N, "nvidia-h100-80gb", None),
        ("aks-a100-mig1g", (None, 56, 0, 8), N, "", None),
        ("h200-mixed", (0, 32, 0, 8), N, "NVIDIA-H200", 143_771),
        ("b200-single", (None, 56, 0, 8), N, "NVIDIA-B200", None),
        ("rtx6000-gfx", (0, 6, 0, 2), N, "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", 97_887),
        ("a100-single-shared", (None, 0, 70, 1), N, "A100-SXM4-40GB", None),
        ("a100-mixed-shared", (0, 2, 28, 2), N, "NVIDIA-A100-SXM4-80GB", None),
        ("h100-count-8", (0, 56, 0, 8), N, "NVIDIA-H100-80GB-HBM3", 81_559),
        ("gb200-tray", (4, 0, 0, 4), N, "NVIDIA-GB200", 189_471),
        ("named-by-model", (4, 0, 0, 4), N, "Tesla-T4", 15_360),
        ("named-by-model-upper", (8, 0, 0, 8), N, "NVIDIA-A100-SXM4-80GB", None),
        ("mps-renamed", (None, 0, 40, 4), N, "NVIDIA-L40S", 46_068),
        ("max-1550", (4, 0, 0, 4), X, "Max_1550", None),
        ("xe-b580", (1, 0, 0, 1), X, "", None),
        ("gaudi3", (8, 0, 0, 8), H, "", None),
        ("fake-gpu", (2, 0, 0, 2), N, "Tesla-K80", 11_441),
        ("vgpu-guest", (1, 0, 0, 1), N, "GRID-V100D-8Q", 8192),
        ("hami-sick", (None, 0, 10, 2), N, "L4", None),
        ("partitionable", (1, 0, 0, 1), N, "NVIDIA-H100-80GB-HBM3", 81_559),
        ("consumable", (1, 0, 0, 1), N, "NVIDIA-L40S", 46_068),
        ("amd-auto", (1, 0, 0, 1), A, "AMD_Instinct_MI300X_OAM", 196_592),
        ("dra-xid", (1, 0, 0, 2), N, "NVIDIA-H100-80GB-HBM3", None),
        ("dra-xid-none", (1, 0, 0, 1), N, "NVIDIA-H100-80GB-HBM3", None),
        ("nfd-class", (None, 0, 0, 0), N, "", None),
        ("nfd-amd", (None, 0, 0, 0), A, "", None),
        ("spark-gb10", (1, 0, 0, 1), N, "NVIDIA-GB10", None),
        ("plugin-zero", (0, 0, 0, 2), N, "NVIDIA-A30", 24_576),
        ("odd-order", (None, 0, 4, 1), N, "Tesla-T4", 15_360),
        ("nvsentinel-cordoned", (8, 0, 0, 8), N, "NVIDIA-H100-80GB-HBM3", None),
    ],
)
def test_what_is_offered_is_told(name, resources, vendor, product, mib):
    node = seen(name)

    assert (node.is_gpu_node, units(node), node.gpu_vendor) == (True, resources, vendor)
    assert (node.gpu_product, node.gpu_memory_mib) == (product, mib)


@pytest.mark.parametrize("name", ["imex-only", "nfd-no-vendor"])
def test_what_only_looks_like_a_gpu_makes_no_gpu_node(name):
    assert not seen(name).is_gpu_node


@pytest.mark.parametrize(
    ("name", "devices", "boards"),
    [
        ("kubevirt-vgpu", ["nvidia.com/NVIDIA_A10-12Q", "nvidia.com/GA102GL_A10"], 1),
        ("kubevirt-audio", ["nvidia.com/GA102GL_A10"], 2),
        ("kata-pgpu", ["nvidia.com/pgpu"], 8),
        ("amd-vf", ["amd.com/gpu_vf"], 0),
        ("amd-pf", ["amd.com/gpu_pf"], 8),
        ("amd-vfio", ["gpu.amd.com/vfio"], 1),
        ("amd-dra-vfs", ["gpu.amd.com/vfio"], 0),
    ],
)
def test_what_virtual_machines_get_is_told_as_that(name, devices, boards):
    node = seen(name)

    assert units(node) == (None, 0, 0, boards)
    assert [(line.name, line.kind) for line in lines_of(node)] == [(each, "virtual") for each in devices]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("dra-xid", "GPU 5: its DRA driver taints it gpu.nvidia.com/xid=79."),
        ("hami-sick", "GPU 1: HAMi's device plugin reports it as unhealthy."),
        (
            "kubelet-says",
            (
                "GPU-99999999-0000-0000-0000-000000000001: the kubelet reports it as unhealthy; "
                "kubelet-says/train-0 uses it."
            ),
        ),
    ],
)
def test_whoever_names_the_sick_gpu_is_quoted(name, reason):
    assert state_of(seen(name)).reason == reason


def test_a_mode_that_a_board_is_not_in_is_no_sickness():
    assert (seen("amd-auto").gpus_missing, seen("amd-auto").unhealthy_gpus) == (0, [])


def test_a_board_that_is_offered_to_machines_too_is_one_board():
    twice, unaddressed = seen("passthrough-twice"), seen("passthrough-no-address")

    assert (units(twice), twice.capacity) == ((2, 0, 0, 3), {"gpu.nvidia.com": 2, "gpu.nvidia.com/vfio": 1})
    assert (units(unaddressed), unaddressed.capacity) == ((1, 0, 0, 1), {"gpu.nvidia.com": 1})


def test_two_claims_on_one_device_take_one_gpu():
    assert seen("consumable").gpu_allocated == 1


def test_the_nvlink_domain_is_that_of_the_label():
    assert seen("gb200-tray").nvlink_domain == "8b7dd5f3-a2f7-4a1a-9a1b-1e0f6a4c2d11.32766"


def test_every_recording_is_read():
    assert unread(CLUSTERS) == set()
