"""What the product answers about conditions that detectors of clouds and vendors write, each as its source has it."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.models import Cluster
from health.evaluation import evaluation_round
from health.models import Finding
from tests import make
from tests.fleet.recorded import Recorded, observed, seen, unread
from tests.pages import page, visiting
from tests.reports import causes, steps
from tests.reports import told as texts_of

pytestmark = pytest.mark.django_db
CLUSTERS = (Recorded("detectors"),)


@pytest.fixture(scope="module", autouse=True)
def _observed(django_db_setup, django_db_blocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with observed(CLUSTERS, django_db_blocker, tmp_path_factory):
        yield


@pytest.fixture
def found() -> dict[str, Finding]:
    """The finding about the conditions of each node, by its name."""
    evaluation_round.evaluate_cluster(Cluster.objects.get(name="detectors"), now=timezone.now())
    rows = Finding.objects.filter(rule="node-conditions").select_related("node")
    return {row.node.name: row for row in rows}


EXPECTED = {
    "gb300-imex-idle": ("note", "IMEX daemon status is -3 (not READY) Recommended Action=NONE"),
    "aks-gpu-missing": (
        "critical",
        "Reported by AKS: GPUMissing: Expected 8 GPUs but found 7",
    ),
    "eks-xid-48": ("critical", "AcceleratedHardwareReady=False: NvidiaXID48Error: detected XID-48 on the instance"),
    "aks-xid-hardware": ("critical", "XID error-codes found: 48, 56"),
    "aks-xid-application": ("note", "XID error-codes found: 13, 31"),
    "aks-plugin-unhealthy": ("critical", "nvidia-device-plugin.service is not active"),
    "eks-imex": ("warning", "DCGMHealthCode122: DCGM detected issues in health check system with error code 122"),
    "eks-xid-31": ("note", "detected XID-31 on the instance"),
    "eks-devices-lost": ("critical", "GPU count 7 does not match the expected count 8"),
    "eks-network": ("warning", "NetworkingReady=False: IPAMDNotRunning"),
    "nebius-topo": ("critical", "found OK count: 49, expected: 56"),
    "nvs-79-long": ("critical", "Recommended Action=RESTART_BM"),
    "nvs-imex-support": ("warning", "Recommended Action=CONTACT_SUPPORT"),
    "nvs-inforom": ("critical", "Recommended Action=COMPONENT_RESET"),
    "nvs-sxid-none": ("note", "Recommended Action=NONE"),
    "nvs-rightly-cordoned": ("critical", "DCGM_FR_VOLATILE_DBE_DETECTED"),
    "amd-hot": ("critical", "AMDGPUUnhealthy: Temperature Threshold Exceeded"),
    "gcm-xid": ("critical", "GPU has fallen off the bus"),
    "gke-readonly": ("warning", "ReadonlyFilesystem"),
    "gke-xid-application": ("note", 'XidCriticalError: {"31":true}'),
    "gke-xid-hardware": ("critical", "Reported by GKE's device plugin: "),
    "eks-dcgm-lost": ("warning", "DCGMError: failed to initialize DCGM"),
    "nvs-xid-31-none": ("note", "Detected XID 31 for GPU 4"),
    "nvs-xid-145-none": ("warning", "145, RLW_SRC_TRACK Nonfatal"),
    "soperator": ("warning", "HardwareIssuesSuspected: DCGMFailed: health check all_reduce failed"),
}


def test_every_recording_is_seen():
    assert unread(CLUSTERS) == set()


def test_each_bad_condition_is_a_finding_with_its_own_message(found):
    told = {name: (row.severity, words) for name, row in found.items() for words in [EXPECTED[name][1]]}

    assert told == EXPECTED
    assert [name for name, row in found.items() if EXPECTED[name][1] not in texts_of(row)] == []


def test_what_is_fine_or_of_unknown_polarity_is_no_finding(found):
    assert not found.keys() & {"aks-well", "eks-well", "coreweave", "k3s-server"}


def test_an_idle_imex_daemon_blames_no_nvlink(found):
    idle = found["gb300-imex-idle"]

    assert "IMEX does not run while no ComputeDomain is active" in causes(idle)
    assert "cordons" not in steps(idle)


def test_a_long_message_is_whole_in_the_evidence(found):
    assert found["nvs-79-long"].facts["SysLogsXIDError"].count("NVRM: GPU at PCI:0000:ef:00") == 4
    assert "reboot the node" in steps(found["nvs-79-long"])


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("eks-xid-48", "AcceleratedHardwareReady=False EKS node monitoring agent, critical NvidiaXID48Error"),
        ("coreweave", "CWActive=True written by an unknown detector"),
        ("k3s-server", "EtcdIsVoter=True"),
        ("nvs-inforom", "Recommended action: COMPONENT_RESET"),
        ("aks-well", "2 conditions without a fault"),
    ],
)
def test_the_page_of_a_node_tells_each_condition_by_its_polarity(name, says):
    assert says in page(visiting(make.a_user(role="viewer")), f"/nodes/{seen(name).pk}").text


@pytest.mark.parametrize(
    ("node", "cause", "does"),
    [
        (
            "gke-xid-application",
            "An application failed with Xid 31. No GPU is at fault.",
            "The hardware needs no action",
        ),
        ("gke-xid-hardware", "", "Xid 48:"),
        ("eks-dcgm-lost", "That is no GPU fault.", "delete the agent's pod"),
        ("nvs-xid-145-none", "", "NVSentinel recommends NONE (do nothing)."),
    ],
)
def test_what_is_advised_fits_what_the_condition_says(found, node, cause, does):
    assert cause in causes(found[node])
    assert does in steps(found[node])


def test_a_cordon_that_nvsentinel_has_left_behind_is_found_with_its_command(found):
    (left,) = Finding.objects.filter(rule="cordon-stale")

    assert "Cordoned by: NVSentinel\nReason is gone: none of its conditions reports" in texts_of(left)
    assert "kubectl uncordon nvs-left-cordoned" in steps(left)
    assert "k8saas.nvidia.com/cordon-by-" in steps(left)


def test_a_device_that_its_dra_driver_calls_unhealthy_is_found(found):
    (sick,) = Finding.objects.filter(rule="device-unhealthy")

    assert texts_of(sick).endswith("0000-a0-00-0-0x1020: its DRA driver reports it as unhealthy (healthy=false)")
    assert seen("gaudi-unhealthy").allocatable == {"gaudi.intel.com": 2}
