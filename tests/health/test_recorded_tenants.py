"""What is said of tenants' pods, and of operands that are Ready and do nothing, on clusters that people posted."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from fleet.models import Bookmark, Cluster, Node, Operand, OperandRevision, Pod
from fleet.pod_reasons import PodReason, reasons_of
from health.evaluation.evaluation_round import evaluate_cluster
from health.models import Finding
from health.stack import OperandOnNode, read_stack
from health.stack.causes import Weight
from tests import make
from tests.fleet.recorded import Recorded, observed, seen, unread
from tests.health.logs import logged
from tests.pages import page, visiting
from tests.reports import causes, steps, told

pytestmark = pytest.mark.django_db
OPERATED = ("ClusterPolicy", "NVIDIADriver")
CLUSTERS = (
    Recorded("tenants"),
    Recorded("host-driver", OPERATED),
    Recorded("driver-stuck", OPERATED),
    Recorded("fragmented"),
    Recorded("policy-stuck", OPERATED),
    Recorded("driver-conflict", OPERATED),
    Recorded("nfd-kept-away"),
)


@pytest.fixture(scope="module", autouse=True)
def _observed(django_db_setup, django_db_blocker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with observed(CLUSTERS, django_db_blocker, tmp_path_factory):
        yield


def operand(node: Node, operand: str) -> OperandOnNode:
    return next(row for row in read_stack(node, now=timezone.now()).operands if row.operand == operand and row.pod)


def with_log(node: Node, operand: str, log: str) -> Pod:
    pod = node.pods.get(operand=operand)
    make.a_crash_log(pod, *logged(log))
    return pod


@pytest.mark.parametrize(
    ("name", "of", "log", "key", "said"),
    [
        ("p19", "dcgm-exporter", "exporter-loses-engine", "dcgm_unreachable", "level=fatal"),
        ("q09", "compute-domain-daemon", "imex-in-use", "imex_in_use", "NV_ERR_IN_USE"),
        ("q12", "amd-dra-driver", "amd-dra-semver", "dra_version_refused", "semver.org"),
        ("q13", "operator-validator", "cuda-insufficient", "cuda_driver_not_mounted", "insufficient"),
        ("q14", "operator-validator", "smi-exits-14", "smi_inforom", "infoROM is corrupted"),
        ("q25", "mig-manager", "mig-reset-unsupported", "mig_needs_reboot", "is not supported"),
    ],
)  # fmt: skip
def test_the_line_of_a_log_that_tells_is_found(name, of, log, key, said):
    node = seen(name)
    with_log(node, of, log)
    cause = operand(node, of).cause

    assert cause is not None
    assert cause.key == key
    assert said in cause.quote
    assert cause.action


def test_drivers_of_dynamic_resources_are_operands_with_their_versions():
    found = {
        name: operand(seen(name), of) for name, of in (("q12", "amd-dra-driver"), ("q09", "compute-domain-daemon"))
    }

    assert (found["q12"].version, found["q12"].is_ready) == ("v1.0.0", True)
    assert (found["q09"].version, found["q09"].is_ready) == ("v25.8.1", False)


def test_a_driver_that_publishes_nothing_is_no_well_being_without_its_log():
    cause = operand(seen("q12"), "amd-dra-driver").cause

    assert (cause.key, cause.weight) == ("dra_publishes_nothing", Weight.WRONG)


def reason(name: str) -> PodReason:
    pod = Pod.objects.select_related("node").get(name=name)
    return reasons_of([pod], now=timezone.now())[pod.uid]


@pytest.mark.parametrize(
    ("name", "key", "said", "says", "does"),
    [
        ("hello-0", "cdi_management", "management.nvidia.com/gpu=GPU-fee", "cannot be resolved", "runtimeClassName"),
        ("nccl-test-worker-0", "compute_domain_not_ready", "", "is not ready on this node", "the pod of its daemon"),
        ("vllm-0", "claim_unpublished", "", "No driver publishes devices of gpu.amd.com", "the pod of the DRA driver"),
        ("eight-0", "fragmented", "Insufficient", "8 GPUs are free on 2", "q21-"),
        ("shares-two", "shared_too_large", "maximum request size", "at most 1", "Ask for 1"),
        ("slice-unhealthy", "devices_unhealthy", "cannot allocate", "nvidia.com/mig-1g.5gb", "does not try again"),
        ("stale-allocation", "devices_taken_by_others", "Available: 0", "free devices of nvidia.com/gpu", "restart"),
        ("gpu-is-lost", "gpu_lost", "GPU is lost", "no longer answers", "Xid 79"),
        ("no-links", "plugin_allocate_failed", "device link", "refused", "Xid 79"),
        ("plugin-gone", "plugin_went_away", "EOF", "refused", "device plugin"),
        ("no-runtime", "no_runtime_handler", 'no runtime for "nvidia"', "The container runtime has", "toolkit"),
        ("cdi-of-claim", "cdi_of_claim", "k8s.gpu.nvidia.com/device=gpu-1", "of the claim", "enable_cdi"),
        ("cdi-never", "cdi_management", "unresolvable", "management.nvidia.com/gpu=0 cannot", "runtimeClassName"),
        ("unknown-device", "gpushare_unplanned", "no-gpu-has-128MiB-to-run", "chose no GPU", "gpushare-scheduler"),
        ("mismatch", "library_mismatch", "version mismatch", "different versions", "reboot"),
        ("volume-elsewhere", "volume_attached_elsewhere", "Multi-Attach", "another node", "VolumeAttachment"),
        ("start-error-silent", "never_started", "back-off", "cannot start", "describe pod"),
        ("not-registered", "dra_not_registered", "not registered", "compute-domain.nvidia", "pod of the DRA driver"),
        ("prepare-times-out", "dra_prepare_timeout", "DeadlineExceeded", "did not prepare", "DRA driver's pod"),
        ("empty-device", "dra_empty_device", "empty device edits", "an empty device", "pod of the DRA driver"),
        ("all-held", "gpus_all_held", "used: 8", "8 of 8 were in use when it came", "another scheduler"),
        ("slice-no-room", "dra_no_room", "1g.20gb", "cannot be partitioned", "slices"),
        ("too-big", "cuda_out_of_memory", "Tried to allocate", "GPU memory", "Reduce"),
        ("no-fabric", "cuda_fabric", "802", "NVSwitch", "fabric manager"),
        ("not-given", "cuda_driver_not_given", "insufficient", "this node runs 580.95.05", "NVIDIA's runtime"),
        ("host-memory", "host_memory", "", "the node ran out of memory", "Find what uses"),
        ("silent", "tenant_crashed", "back-off", "keeps crashing", "-n programs-end logs silent -c main --previous"),
        ("still-loading", "probe_ended_program", "connection refused", "its startup probe", "failureThreshold"),
        ("exit-139", "program_segfault", "exit code 139", "native code", "Xids"),
        ("killed-with-0", "host_memory", "", "Container app2 was killed", "Raise"),
        ("hook-killed", "hook_killed", "exit status 137", "hook was killed", "limits.memory"),
        ("sixteen", "larger_than_any_node", "Insufficient", "The largest node has 8", "Request at most 8"),
        ("of-no-slice", "offered_by_no_node", "Insufficient", "No node offers nvidia.com/mig", "nvidia.com/mig.config"),
        ("of-a-gang", "gang_waits", "minAvailable", "its group", "The group needs room"),
        ("gated", "gated", "", "scheduling gate", "Kueue"),
        ("tainted", "scheduler", "untolerated", "untolerated taints", "template"),
    ],
)  # fmt: skip
def test_a_tenants_pod_says_why_it_does_not_run(name, key, said, says, does):
    found = reason(name)

    assert found.key == key
    assert said in found.quote
    assert says in found.sentence
    assert does in found.action
    assert "{" not in found.sentence + found.action


def test_a_pod_that_runs_has_no_reason():
    well = Pod.objects.select_related("node").get(name="well")

    assert reasons_of([well], now=timezone.now()) == {}


@pytest.mark.parametrize("name", ["hello-0", "cdi-never", "start-error-silent", "unknown-device", "mismatch"])
def test_no_advice_leads_to_a_log_that_cannot_exist(name):
    assert "logs" not in reason(name).action


def test_a_pod_that_waits_for_a_compute_domain_says_what_its_daemon_says():
    with_log(seen("q09"), "compute-domain-daemon", "imex-in-use")
    found = reason("nccl-test-worker-0")

    assert "Another nvidia-imex uses the IMEX session. The GPU driver has one IMEX session." in found.sentence
    assert "systemctl disable --now nvidia-imex" in found.action
    assert "NV_ERR_IN_USE" in found.quote


def test_a_pod_that_waits_for_a_claim_says_what_the_driver_says():
    with_log(seen("q12"), "amd-dra-driver", "amd-dra-semver")
    found = reason("vllm-0")

    assert "rejects the ResourceSlice: version 6.19.14.31400000" in found.sentence
    assert "1.0.1" in found.action


def test_a_plugin_that_is_ready_and_found_none_says_why_in_its_log():
    node = seen("finds-none")
    silent = operand(node, "device-plugin").cause
    with_log(node, "device-plugin", "plugin-finds-none")
    told = operand(node, "device-plugin").cause

    assert silent.key == "plugin_offered_never"
    assert told.key == "no_nvml"
    assert told.title == "Library of the driver is not found"
    assert "Incompatible strategy" in told.quote


@pytest.mark.parametrize(
    ("of", "says"),
    [
        ("q05", ["management.nvidia.com/gpu=GPU-fee00000", "Remove runtimeClassName nvidia-cdi from the pod"]),
        ("q09", ["The daemon of the ComputeDomain is not ready", "current node not ready in ComputeDomain"]),
        ("programs", ["The program asked for more memory", "Tried to allocate 20.00 MiB"]),
    ],
)
def test_the_page_of_a_node_says_why_its_pods_do_not_run(of, says):
    said = page(visiting(make.a_user(role="viewer")), f"/nodes/{seen(of).pk}").text

    assert [each for each in says if each not in said] == []


@pytest.mark.parametrize(
    ("of", "says"),
    [
        ("q12", ["amd-dra-publishes-nothing/vllm-0", "No driver publishes devices of gpu.amd.com"]),
        ("q21-1", ["four-and-four/eight-0", "none has 8 GPUs", "8 GPUs are free on 2 of them"]),
    ],
)
def test_the_page_of_a_cluster_has_the_pods_that_wait_for_a_node(of, says):
    said = page(visiting(make.a_user(role="viewer")), f"/clusters/{seen(of).cluster_id}").text

    assert [each for each in says if each not in said] == []


def test_rest_says_why_a_pod_does_not_run():
    client = visiting(make.a_user(role="viewer"))
    rows = {row["name"]: row["reason"] for row in client.get("/api/v1/pods?limit=100").json()["results"]}

    assert rows["well"] is None
    assert rows["eight-0"]["key"] == "fragmented"
    assert rows["eight-0"]["is_wrong"] is False
    assert rows["eight-0"]["summary"] == "2 nodes qualify. 8 GPUs are free on 2 of them, at most 4 on one (q21-1)."


def findings(cluster: Cluster) -> dict[tuple[str, str], Finding]:
    """As a look finds them; what still has to last is confirming."""
    Bookmark.objects.filter(cluster=cluster).update(last_seen_at=timezone.now())
    evaluate_cluster(cluster, now=timezone.now())
    return {(finding.rule, finding.subject): finding for finding in Finding.objects.filter(cluster=cluster)}


def test_findings_carry_the_causes_and_the_lines_that_tell_them():
    for name, of, log in (("q09", "compute-domain-daemon", "imex-in-use"), ("q12", "amd-dra-driver", "amd-dra-semver")):
        with_log(seen(name), of, log)
    found = findings(seen("q12").cluster)

    fails = found["pods-failing", "node q05"]
    assert "management.nvidia.com/gpu=GPU-fee00000" in causes(fails)
    assert steps(fails).startswith("Remove runtimeClassName nvidia-cdi from the pod")
    assert "unresolvable CDI devices" in told(fails)
    starts = found["pods-not-starting", "node q09"]
    assert "Another nvidia-imex uses the IMEX session" in causes(starts)
    domain = found["compute-domain-down", "node q09"]
    assert "one IMEX session" in causes(domain)
    assert "systemctl disable --now nvidia-imex" in steps(domain)
    offers = found["gpus-never-offered", "node q12"]
    assert "AMD DRA driver: Ready" in told(offers)
    assert "6.19.14.31400000" in causes(offers)
    assert "1.0.1" in steps(offers)
    claims = found["claims-waiting", "ResourceClaims"]
    assert "vllm-0" in told(claims)
    assert "gpu.amd.com" in causes(claims)
    assert "Device plugin: Ready" in told(found["gpus-never-offered", "node finds-none"])
    assert ("pods-not-starting", "node programs") not in found
    assert ("gpus-never-offered", "node q05") not in found


@pytest.mark.parametrize(
    ("name", "taint"),
    [
        ("tainted-gpu", "nvidia.com/gpu=true:NoSchedule"),
        ("tainted-amd", "amd.com/gpu=present:NoSchedule, team=a:NoExecute"),
    ],
)
def test_a_node_that_nothing_labels_as_a_taint_keeps_the_labeller_away_is_a_finding(name, taint):
    found = findings(seen(name).cluster)

    offers = found["gpus-never-offered", f"node {name}"]
    assert "Node feature discovery: " in told(offers)
    assert causes(offers).endswith(taint)
    assert steps(offers).startswith("Add a toleration to the DaemonSet")
    assert ("gpus-never-offered", "node without-gpus") not in found


def test_a_driver_object_that_stays_not_ready_beside_its_ready_pod_is_a_finding():
    found = findings(seen("p22").cluster)["driver-object-stuck", "NVIDIADriver"]

    assert found.title == "NVIDIADriver h100 stays notReady"
    assert "older template" in causes(found)
    assert "Delete the driver pod" in steps(found)
    assert told(found).endswith("Waiting for driver pod to be ready")


def test_an_upgrade_under_way_is_no_driver_object_that_is_stuck():
    Node.objects.filter(name="p22").update(upgrade_state="upgrade-required")

    assert ("driver-object-stuck", "NVIDIADriver") not in findings(seen("p22").cluster)


def policy_stuck() -> Finding | None:
    return findings(seen("policy-1").cluster).get(("cluster-policy-stuck", "ClusterPolicy"))


def test_a_cluster_policy_that_stays_not_ready_beside_ready_pods_is_a_finding():
    found = policy_stuck()

    assert found.title == "ClusterPolicy gpu-cluster-policy stays notReady"
    assert "states not ready: [state-driver]" in told(found)
    assert "Restart the operator's pod." in found.steps


def test_pods_of_an_older_template_are_why_a_cluster_policy_stays_not_ready():
    pod = Pod.objects.get(node__name="policy-1", operand="driver")
    for number, name in enumerate(("old", "new"), start=1):
        OperandRevision.objects.create(
            cluster=pod.cluster, namespace=pod.namespace, name=name, uid=name, owner_uid=pod.owner_uid, revision=number,
            revision_hash=name, changed_at=timezone.now(),
        )  # fmt: skip
    found = policy_stuck()

    assert causes(found).startswith("Pods of Driver use an older template")
    assert any("Delete the node's pods of an older template." in step for step in found.steps)


@pytest.mark.parametrize(
    "change",
    [
        lambda: Pod.objects.filter(node__name="policy-1").update(is_ready=False),
        lambda: Node.objects.filter(name="policy-1").update(upgrade_state="upgrade-required"),
        lambda: Node.objects.filter(name="policy-1").update(is_held=True),
        lambda: Operand.objects.filter(cluster__name="policy-stuck").update(desired=2, ready=1),
    ],
    ids=["a pod is not ready", "an upgrade", "a plan holds the node", "a pod is missing"],
)
def test_a_cluster_policy_is_not_stuck_while_its_operands_say_why(change):
    change()

    assert policy_stuck() is None


def test_nvidia_drivers_that_select_the_same_node_are_a_finding_though_they_say_ready():
    found = findings(seen("conflict-1").cluster)["drivers-conflict", "NVIDIADriver"]

    assert "NVIDIADrivers: default, nvd-gold" in told(found)
    assert "conflicting NVIDIADriver NodeSelectors found" in told(found)
    assert "change a label" in steps(found)


def test_every_recording_is_read():
    assert unread(CLUSTERS) == set()
