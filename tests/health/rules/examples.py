"""One example or more for each rule: facts on which it reports a problem."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from gpu.cordons import StaleCordon
from gpu.label_conflicts import LabelConflict
from gpu.operands import DCGM_EXPORTERS, DEVICE_PLUGIN, DRIVER
from gpu.resources.names import Vendor
from gpu.xids import XIDS
from health.rules.base import (
    BadCombination,
    Blocker,
    ClusterFacts,
    DriverConflict,
    FailingPod,
    IdleAllocation,
    NodeCondition,
    NodeFacts,
    NoOffer,
    RejectedOwner,
    RequestedByOthers,
    SplitGang,
    StuckDriver,
    StuckPolicy,
    TaintCounts,
    WaitingWorkload,
    WorkloadHere,
)
from health.rules.gpus.base import GpuFacts, XidSeen
from health.suspects import NodeOutcome, suspects_of
from health.telemetry.base import Exploding
from health.telemetry.snapshot_memory import Growth
from kube.credential_life import CredentialLife
from tests.make import NOON
from wording.reports import EvidenceItem

GPU = "nvidia.com/gpu"
CAUSE, STEPS = "The image does not exist.", ("Correct the image.",)
BLOCKER = Blocker((CAUSE,), STEPS)
INCOMPLETE = (EvidenceItem("Pool gpu-001 of gpu.nvidia.com", "1 of 2 ResourceSlices"),)


SUSPECTS = suspects_of(
    NodeOutcome(f"gpu-{number}", number < 5, {"kernel": "5.15.0-1068" if number < 5 else "6.8.0-64"})
    for number in range(12)
)


def node_examples(name: str = "gpu-h200-007") -> Mapping[str, tuple[NodeFacts, ...]]:
    well = NodeFacts(name, allocatable={GPU: 8}, capacity={GPU: 8}, expected={GPU: 8}, requested={GPU: 8})
    lost = replace(well, allocatable={GPU: 6})
    pods = tuple(FailingPod(f"team-a/infer-{at}", "CrashLoopBackOff", 3, cause=CAUSE, steps=STEPS) for at in range(25))
    here = WorkloadHere("team-a/infer", 2, 0, 1, 30, 20, gpu=3, tries=5)
    sliced = replace(well, sharing="time-slicing", sharing_replicas=4, workload_classes=frozenset({"inference"}))
    silent = replace(well, is_reporting=False)
    reported = NodeCondition("GpuXidError", "x" * 400, reporter="NVSentinel", recommended_action="NONE", xids=(79,))
    racing = NodeCondition("FrequentContainerdRestart", "again", reporter="node-problem-detector")
    boots = {"booted_at": NOON}
    return {
        "allocatable-below-expected": (
            lost,
            replace(lost, unhealthy=("GPU 3: AMD's metrics exporter reports it as unhealthy.",), vendor=Vendor.AMD),
            replace(lost, capacity={GPU: 6}, **boots),
            replace(well, allocatable={}, capacity={}),
            replace(well, expected={"gpu.nvidia.com": 8}, capacity={"gpu.nvidia.com": 7}, allocatable={}, **boots),
            replace(well, expected={"gpu.nvidia.com": 8}, allocatable={}, incomplete_pools=INCOMPLETE),
        ),
        "compute-domain-down": (
            replace(well, domain_daemon=pods[0]),
            replace(well, domain_daemon=FailingPod("a/b", "Running", 1)),
        ),
        "cordon-removed": (replace(well, uncordoned_since=NOON),),
        "cordon-stale": (
            replace(well, stale_cordon=StaleCordon("kured", "its annotation was removed", "kubectl uncordon x")),
        ),
        "cpu-pods-on-gpu-node": (
            replace(well, free_gpus=4, requested_by_others=(RequestedByOthers("CPU", 60, 96, "cores"),)),
            replace(
                well,
                free_gpus=1,
                requested_by_others=(
                    RequestedByOthers("CPU", 30, 96, "cores"),
                    RequestedByOthers("memory", 900, 1000, "GiB"),
                ),
            ),
        ),
        "device-unhealthy": (replace(well, unhealthy=("GPU 3: HAMi's device plugin reports it as unhealthy.",)),),
        "exporter-silent": (
            silent,
            replace(silent, ever_reported=False),
            replace(silent, ever_reported=False, are_others_reporting=False, vendor=Vendor.AMD),
            replace(silent, ever_reported=False, unplaced_xids=(79,)),
        ),
        "gpus-never-offered": (
            replace(well, never_offered=NoOffer()),
            replace(well, never_offered=NoOffer("NVIDIA device plugin", True, CAUSE, STEPS, "no devices found")),
        ),
        "idle-gpus": (replace(well, idle_allocations=(IdleAllocation("team-a/notebook", 24, number=2),)),),
        "inference-on-time-slices": (sliced,),
        "mig-change-stuck": (replace(lost, mig_state="pending", mig_config="all-1g.10gb", mig_overdue_since=NOON),),
        "node-conditions": (
            replace(well, conditions=(reported,)),
            replace(
                well, conditions=(reported, racing, *(replace(racing, type=f"Bad{at}") for at in range(30))), **boots
            ),
            replace(
                well, conditions=(NodeCondition("MemoryPressure", "KubeletHasInsufficientMemory", reporter="kubelet"),)
            ),
        ),
        "node-flapping": (replace(well, falls=3),),
        "node-not-ready": (
            replace(well, is_ready=False, not_ready_reason="container runtime is down", **boots),
            replace(well, is_ready=False, not_ready_reason="KubeletNotReady"),
            replace(well, is_unreported=True),
        ),
        "operand-down": (replace(well, operands_away=(DEVICE_PLUGIN, DCGM_EXPORTERS[0])),),
        "labels-contradict": (
            replace(
                well, label_conflicts=(LabelConflict("gpu-type", "a100", "NVIDIA-H200", "nvidia.com/gpu.product"),)
            ),
        ),
        "paused-operands": (replace(well, is_paused=True),),
        "pods-failing": (
            replace(well, failing_pods=pods),
            replace(well, failing_pods=(FailingPod("team-a/bare", "Evicted", 0, is_over=True),)),
            replace(well, failing_pods=(FailingPod("gpu-operator/driver", "Error", 9, DRIVER),)),
            replace(well, failing_pods=(FailingPod("team-a/infer", "ImagePullBackOff", 0),)),
        ),
        "pods-not-starting": (replace(well, starting_pods=pods),),
        "upgrade-failed": (
            replace(well, upgrade_state="upgrade-failed", upgrade_blocker=BLOCKER),
            replace(well, upgrade_state="upgrade-failed"),
        ),
        "upgrade-stuck": (
            replace(well, upgrade_state="drain-required", upgrade_blocker=BLOCKER),
            replace(well, upgrade_state="pod-restart-required"),
        ),
        "versions-disagree": (replace(well, drivers=(("its label", "570.124.06"), ("its driver pod", "580.95.05"))),),
        "workload-fails-here": (
            replace(well, workloads=(here,)),
            replace(well, workloads=(replace(here, failing=1, gpu=None), replace(here, name="team-b/train"))),
        ),
        "workload-fails-on-some": (replace(well, workloads=(replace(here, failing_elsewhere=9, suspects=SUSPECTS),)),),
        "xid-of-unknown-gpu": (replace(well, unplaced_xids=(45,)), replace(well, unplaced_xids=(79, 999))),
    }


def cluster_examples(name: str = "demo") -> Mapping[str, tuple[ClusterFacts, ...]]:
    pods = tuple(FailingPod(f"team-a/vllm-{at}", "Pending", 0, cause=CAUSE, steps=STEPS) for at in range(25))
    bad = BadCombination(
        False, "Operator 26.3.0, Kubernetes 1.36", "Operator 26.3 supports no Kubernetes 1.36.", "", "https://x", 4
    )
    well = ClusterFacts(name)
    return {
        "claims-waiting": (replace(well, claims_waiting=pods),),
        "cluster-not-seen": (
            replace(
                well, unseen_state="stale", unseen_reason="Not seen since 12:00. Refused.", unseen_action="Check it."
            ),
        ),
        "cluster-policy-stuck": (
            replace(well, stuck_policy=StuckPolicy("cluster-policy", 12, ("Driver", "Container toolkit"), "not ready")),
            replace(well, stuck_policy=StuckPolicy("cluster-policy", 1, ())),
        ),
        "cluster-unwatched": (replace(well, unwatched_since=NOON, unwatched_action="Start a worker."),),
        "credential-expires": (
            replace(
                well,
                credentials=(
                    CredentialLife("client certificate", NOON - timedelta(days=360), NOON + timedelta(days=5)),
                ),
                evaluated_at=NOON,
            ),
        ),
        "driver-object-stuck": (replace(well, stuck_drivers=(StuckDriver("h100", 2, 1), StuckDriver("z", 1, 0))),),
        "drivers-conflict": (replace(well, driver_conflict=DriverConflict(("h100", "default"), "both select gpu-1")),),
        "gang-across-domains": (
            replace(well, split_gangs=tuple(SplitGang(f"Job team-a/train-{at}", 16, 2) for at in range(25))),
        ),
        "gpu-nodes-untainted": (replace(well, taints=TaintCounts(64, 60, 12)),),
        "observer-behind": (replace(well, lag_ms=2100, behind_since=NOON),),
        "operator-down": (replace(well, operator_trouble="The GPU operator does not run (0 of 1 pods ready)."),),
        "series-explosion": (replace(well, exploding=(Exploding("DCGM_FI_DEV_GPU_TEMP", "10.0.0.1:9400", 90_000),)),),
        "telemetry-silent": (replace(well, telemetry_silent_reason="The node's exporter does not answer."),),
        "unsupported-combination": (
            replace(well, combinations=(bad,)),
            replace(well, combinations=(replace(bad, is_known_bad=True), bad)),
        ),
        "upgrade-queue-still": (
            replace(well, upgrades_queued=5, upgrades_are_still=True),
            replace(
                well, upgrades_queued=5, upgrades_are_still=True, upgrades_blocker=BLOCKER, upgrades_blocked_by="x"
            ),
        ),
    }


def owner_examples(name: str = "Deployment team-a/chat") -> Mapping[str, tuple[RejectedOwner, ...]]:
    quota = "exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: {}, limited: requests.nvidia.com/gpu={}"
    messages = (
        quota.format("requests.nvidia.com/gpu=8", 8),
        quota.format("requests.nvidia.com/gpu=0", 4),
        'admission webhook "validate.example.org" denied the request: no',
        "violates PodSecurity",
        "something else " * 30,
    )
    asks = {"nvidia.com/gpu": 8}
    return {"pods-rejected": tuple(RejectedOwner(name, "team-a", message, 2, asks) for message in messages)}


def waiting_examples(name: str = "Job team-a/train") -> Mapping[str, tuple[WaitingWorkload, ...]]:
    hours = timedelta(hours=9)
    reason = "Free GPUs are spread over nodes: none has 8 GPUs."
    waiting = WaitingWorkload(
        name, "east", "team-a", "train", 20_000, 160_000, NOON - hours, hours, frozenset({"training"}), reason
    )
    return {"pods-pending-long": (waiting, replace(waiting, is_wrong=False, steps=STEPS, decided_by="nvidia.com/gpu"))}


def gpu_examples(node: str = "gpu-h200-007") -> Mapping[str, tuple[GpuFacts, ...]]:
    well = GpuFacts(
        node, f"GPU 3 of {node}", vendor=Vendor.NVIDIA, now={"temperature_celsius": 40.0}, evaluated_at=NOON
    )

    def now(**values: float) -> GpuFacts:
        return replace(well, now=values)

    def grown(**amounts: float) -> GpuFacts:
        growths = {key: Growth(amount, NOON.timestamp() - 3000) for key, amount in amounts.items()}
        return replace(well, grown=growths)

    def xid(number: int, words: str = "", **given: Any) -> GpuFacts:
        return replace(well, xid=XidSeen(number, NOON - timedelta(minutes=1), words), **given)

    busy = now(nvlink_mib_per_s=10.0, gpu_utilisation_ratio=0.9)
    unhealthy = replace(well, parts={"dcgm_health": {"MEM": 20.0, "PCIE": 10.0}}, now={"dcgm_health": 20.0})
    return {
        "gpu-xid": (
            *(xid(number) for number in XIDS),
            xid(999),
            xid(154, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset)"),
            xid(154, "w" * 300),
            xid(119, driver_changed_at=NOON - timedelta(hours=2)),
            xid(79, again={79: 4}),
            xid(13, again={13: 3}),
            xid(31, again={31: 2}, elsewhere={31: 2}),
            xid(48, past_xids=(XidSeen(63, NOON - timedelta(minutes=2)),)),
            replace(xid(13), parts={"xids_counted": {"13": 20.0}}),
        ),
        "gpu-recovery-action": tuple(now(recovery_action=number) for number in (1, 2, 3, 4, 5, 9)),
        "gpu-resets": (replace(well, resets=3),),
        "gpu-silent": (replace(well, now={}), replace(well, now={}, xid=XidSeen(79, NOON))),
        "gpu-hot": (now(temperature_celsius=84.0), now(temperature_celsius=86.0)),
        "gpu-ecc-uncorrected": (
            now(ecc_uncorrected=2.0),
            grown(rows_remapped_uncorrected=1),
            replace(well, grown={"rows_remapped_uncorrected": Growth(1, NOON.timestamp() - 18000, hours=5.0)}),
        ),
        "gpu-ecc-corrected": (grown(ecc_corrected=400),),
        "gpu-row-remap": (now(row_remap_failed=1.0), now(row_remap_pending=1.0)),
        "gpu-pcie-replays": (grown(pcie_replays=400),),
        "gpu-nvlink-errors": (grown(nvlink_replays=400), grown(nvlink_recoveries=1)),
        "gpu-nvlink-quiet": (replace(busy, is_of_one_job=True, peers={"nvlink_mib_per_s": 1000.0}),),
        "gpu-fabric": (
            *(now(fabric_manager_status=status) for status in (2.0, 4.0, 5.0)),
            now(fabric_manager_status=3.0, fabric_health=float(1 | 1 << 2 | 1 << 4 | 1 << 6 | 2 << 8)),
        ),
        "gpu-throttled": (
            now(clock_reasons=float(0x8 | 0x20 | 0x40 | 0x80)),
            replace(now(clock_events=3.0), parts={"clock_events": {"hw_thermal": 3.0}}),
        ),
        "gpu-dcgm-health": (unhealthy, now(dcgm_health=10.0), replace(unhealthy, parts={"dcgm_health": {"ALL": 20.0}})),
        "gpu-called-unhealthy": (now(called_healthy=0.0),),
        "gpu-memory-nearly-full": (
            replace(now(memory_used_mib=99.0, memory_free_mib=1.0), workload_classes=frozenset({"development"})),
        ),
        "gpu-power-near-limit": (
            replace(now(power_watts=700.0, power_limit_watts=700.0), workload_classes=frozenset({"development"})),
        ),
    }
