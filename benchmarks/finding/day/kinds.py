"""Everything that is planted, a row each: how it is made, where it shows in the data, which rules are right about it.

What a rule asks for is written here as docs/findings.md says it, and is not read from the product: a rule that waits
longer than it says is late.
"""

from __future__ import annotations

import random
from typing import Any

from benchmarks.finding.day.deeds import (
    After,
    Cordon,
    CutGpus,
    LetGo,
    OldRuntime,
    OneAtATime,
    RestartExporter,
    ShareGpus,
    StartWork,
    Stubborn,
    StubbornPod,
    SwitchOperatorOff,
    WithoutValidator,
)
from benchmarks.finding.day.plants import MINUTE, Kind, Make, Place, Planting, Seen
from benchmarks.finding.day.stage import EXPORTER
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.faults.bad_driver import BadDriver, Harm
from simulator.faults.board import Fault
from simulator.faults.broken_operand import Ailment, BrokenOperand
from simulator.faults.ecc_errors import EccErrors
from simulator.faults.failing_workload import FailingWorkload
from simulator.faults.fallen_gpu import FallenGpu
from simulator.faults.flapping_node import FlappingNode
from simulator.faults.full_memory import FullMemory
from simulator.faults.gpu_health import GpuHealth, Result
from simulator.faults.gpu_resets import GpuResets
from simulator.faults.held_driver import HeldDriver
from simulator.faults.hot_gpu import HotGpu
from simulator.faults.idle_holder import IdleHolder
from simulator.faults.left_paused import LeftPaused
from simulator.faults.lost_gpus import LostGpus
from simulator.faults.lying_exporter import Lie, LyingExporter
from simulator.faults.node_condition import NodeCondition
from simulator.faults.nvlink_errors import LinkError, NvlinkErrors
from simulator.faults.pcie_replays import PcieReplays
from simulator.faults.power_limit import PowerLimit
from simulator.faults.refused_pods import RefusedPods
from simulator.faults.row_remap import Remap, RowRemap
from simulator.faults.runtime_race import RuntimeRace
from simulator.faults.series_explosion import SeriesExplosion
from simulator.faults.silent_exporter import Silence, SilentExporter
from simulator.faults.skewed_exporter import SkewedExporter
from simulator.faults.slow_nvlink import SlowNvlink
from simulator.faults.stale_labels import StaleLabels
from simulator.faults.stuck_mig_change import StuckMigChange
from simulator.faults.tainted_node import TaintedNode
from simulator.faults.throttled_gpu import ThrottledGpu
from simulator.faults.uncordoning_manager import UncordoningManager
from simulator.faults.xid import Xid
from simulator.fleets.plan import DRIVER_NEXT, DRIVER_NOW
from simulator.kinds import JOB, REPLICA_SET, STATEFUL_SET

TEMPERATURE, XID = "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_XID_ERRORS"
USED, FREE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE"
POWER, POWER_LIMIT = "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_POWER_MGMT_LIMIT"
NVLINK, ENGINE = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
LINK = "DCGM_FI_DEV_NVLINK_{}_ERROR_COUNT_TOTAL"
# Why a GPU may be slowed down: of DCGM's bits 0x8, 0x20, 0x40, 0x80. A limit of its power is none.
REASONS, SLOWED = ("hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"), 0x8 | 0x20 | 0x40 | 0x80
WATCHED = ("INFOROM", "SM", "PMU", "MCU", "DRIVER", "POWER")  # by DCGM, and by no other rule here
QUICK = "flapping-quickly"  # between two looks: a worker that watches hears each time
# By what they are asked to do: a reset, a reboot, the vendor, a look at NVLink; and after a change of the driver.
XIDS = (46, 48, 62, 64, 74, 79, 92, 95, 109, 110, 119, 120, 140, 143, 144, 149, 154)
APPLICATIONS = (13, 31, 69, 94)  # an application's error: worth a note, and no more
IGNORED = (38, 43, 44, 45)
NVSENTINEL = ("GpuMemWatch", "GpuNvlinkWatch", "GpuPcieWatch", "GpuThermalWatch", "GpuInforomWatch", "SysLogsXIDError")
DETECTOR = ("KernelDeadlock", "ReadonlyFilesystem", "FrequentContainerdRestart", "FrequentKubeletRestart")


def _one(fault: Fault, says: str = "") -> Planting:
    return Planting((fault,), says)


def _xid(codes: tuple[int, ...]) -> Make:
    def make(draw: random.Random, place: Place) -> Planting:
        code = draw.choice(codes)
        times = draw.choice((1, 1, 1, 12))
        return _one(Xid(place.node, place.gpu, code, times=times, every_s=draw.uniform(3, 40)), f"Xid {code}")

    return make


def _has_xid(seen: Seen) -> bool:
    return seen.said(XID) > 0 and seen.said(XID) != seen.before.get(XID, 0.0)


def _link_error(draw: random.Random, place: Place) -> Planting:
    how = draw.choice((LinkError.CRC_FLIT, LinkError.CRC_DATA, LinkError.REPLAY))
    return _one(NvlinkErrors(place.node, place.gpu, how, per_minute=draw.uniform(15, 300)))


def _has_link_errors(seen: Seen) -> bool:
    return any(seen.grown(LINK.format(how)) >= 100 for how in ("CRC_FLIT", "CRC_DATA", "REPLAY"))


def _is_quiet(seen: Seen) -> bool:
    others = [seen.target.values.get((NVLINK, str(gpu)), 0.0) for gpu in range(seen.place.gpus)]
    middle = sorted(others)[len(others) // 2]
    return middle > 0 and seen.said(ENGINE) >= 0.05 and seen.said(NVLINK) < 0.2 * middle


def _is_throttled(seen: Seen) -> bool:
    return bool(int(seen.said("DCGM_FI_DEV_CLOCKS_EVENT_REASONS")) & SLOWED)


def _health(draw: random.Random, place: Place) -> Planting:
    watch, result = draw.choice(WATCHED), draw.choice(tuple(Result))
    return _one(GpuHealth(place.node, place.gpu, watch, result, "DCGM_FR_UNKNOWN"), watch)


def _condition(draw: random.Random, place: Place) -> Planting:
    said = draw.choice(NVSENTINEL + DETECTOR)
    return _one(NodeCondition(place.node, said), said)


def _does_nothing(seen: Seen) -> bool:
    said = [value for (series, _), value in seen.target.values.items() if series == "DCGM_FI_DEV_GPU_UTIL"]
    return len(said) >= seen.place.gpus and not any(said)


def _is_full(seen: Seen) -> bool:
    return seen.said(USED) >= 0.97 * (seen.said(USED) + seen.said(FREE)) > 0


def _is_at_its_limit(seen: Seen) -> bool:
    return seen.said(POWER) >= 0.97 * seen.said(POWER_LIMIT) > 0


def _is_developed_on(at: Place) -> bool:
    """All of its GPUs work, and neither trains nor serves, as its pool has it."""
    return at.workload_class == "development" and at.is_of_one_job


def _silent(draw: random.Random, place: Place) -> Planting:
    return _one(SilentExporter(place.node, draw.choice(tuple(Silence))))


def _release(place: Place, *faults: Fault, says: str = "") -> Planting:
    return Planting(faults, says, (LetGo(place.node),))


def _let_go_with(how: Stubborn) -> Make:
    def make(_: random.Random, place: Place) -> Planting:
        pod = StubbornPod(place.node, how)
        return Planting(says=pod.name, deeds=(pod, After(MINUTE, LetGo(place.node))))

    return make


UPGRADE: dict[str, Any] = {"is_of_gpu": False, "is_upgrade": True, "needs_telemetry": False}
FOUND: tuple[Kind, ...] = (
    Kind("hot", lambda draw, at: _one(HotGpu(at.node, at.gpu, celsius=draw.uniform(87, 97))),
         lambda seen: seen.said(TEMPERATURE) >= 83, ("gpu-hot",), 5 * MINUTE),
    Kind("warm-and-fast", lambda _, at: _one(HotGpu(at.node, at.gpu, celsius=84.6, clock_ratio=1.0)),
         lambda seen: seen.said(TEMPERATURE) >= 83, ("gpu-hot",), 5 * MINUTE),
    Kind("throttled", lambda draw, at: _one(ThrottledGpu(at.node, at.gpu, draw.choice(REASONS))),
         _is_throttled, ("gpu-throttled",), 10 * MINUTE),
    Kind("dcgm-health", _health,
         lambda seen: any(seen.said(f"DCGM_EXP_GPU_HEALTH_STATUS {watch}") >= 10 for watch in WATCHED),
         ("gpu-dcgm-health",), 1 * MINUTE),
    Kind("xid", _xid(XIDS), _has_xid, ("gpu-xid",)),
    Kind("xid-of-an-application", _xid(APPLICATIONS), _has_xid, ("gpu-xid",)),
    Kind("fallen", lambda draw, at: _one(FallenGpu(at.node, at.gpu, after_s=draw.uniform(70, 300)), "Xid 79"),
         _has_xid, ("gpu-xid",)),
    Kind("fallen-between-scrapes", lambda _, at: _one(FallenGpu(at.node, at.gpu, after_s=0)),
         lambda seen: bool(seen.target.values) and (TEMPERATURE, str(seen.place.gpu)) not in seen.target.values,
         ("gpu-silent",), 1 * MINUTE + 90),  # once its last sample is 90 s old
    Kind("ecc-corrected", lambda draw, at: _one(EccErrors(at.node, at.gpu, corrected_per_hour=draw.uniform(400, 9000))),
         lambda seen: seen.grown("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL") >= 100, ("gpu-ecc-corrected",), 5 * MINUTE),
    Kind("ecc-uncorrected", lambda draw, at: _one(EccErrors(at.node, at.gpu, uncorrected=draw.randint(1, 5))),
         lambda seen: seen.said("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL") >= 1, ("gpu-ecc-uncorrected",)),
    Kind("row-remap-pending", lambda _, at: _one(RowRemap(at.node, at.gpu, Remap.PENDING)),
         lambda seen: seen.said("DCGM_FI_DEV_ROW_REMAP_PENDING") >= 1, ("gpu-row-remap", "gpu-xid")),
    Kind("row-remap-failed", lambda _, at: _one(RowRemap(at.node, at.gpu, Remap.FAILED)),
         lambda seen: seen.said("DCGM_FI_DEV_ROW_REMAP_FAILURE") >= 1, ("gpu-row-remap", "gpu-xid")),
    Kind("pcie-replays", lambda draw, at: _one(PcieReplays(at.node, at.gpu, per_minute=draw.uniform(10, 400))),
         lambda seen: seen.grown("DCGM_FI_DEV_PCIE_REPLAY_COUNTER") >= 100, ("gpu-pcie-replays",), 5 * MINUTE),
    Kind("nvlink-errors", _link_error, _has_link_errors, ("gpu-nvlink-errors",), 1 * MINUTE),
    Kind("nvlink-recoveries",
         lambda draw, at: _one(NvlinkErrors(at.node, at.gpu, LinkError.RECOVERY, per_minute=draw.uniform(0.2, 4))),
         lambda seen: seen.grown(LINK.format("RECOVERY")) >= 1, ("gpu-nvlink-errors",), 1 * MINUTE),
    Kind("nvlink-quiet", lambda draw, at: _one(SlowNvlink(at.node, at.gpu, ratio=draw.uniform(0.0, 0.15))),
         _is_quiet, ("gpu-nvlink-quiet",), 10 * MINUTE, fits=lambda at: at.is_of_one_job),
    Kind("resets-again-and-again",
         lambda draw, at: _one(GpuResets(at.node, at.gpu, every_s=draw.uniform(4 * MINUTE, 8 * MINUTE))),
         lambda seen: seen.resets >= 3, ("gpu-resets",)),
    Kind("memory-full", lambda draw, at: _one(FullMemory(at.node, at.gpu, used_ratio=draw.uniform(0.98, 1.0))),
         _is_full, ("gpu-memory-nearly-full",), 15 * MINUTE, fits=_is_developed_on),
    Kind("power-at-its-limit", lambda draw, at: _one(PowerLimit(at.node, at.gpu, watts=draw.uniform(105, 140))),
         _is_at_its_limit, ("gpu-power-near-limit",), 15 * MINUTE, fits=_is_developed_on),
    Kind("mig-change-stuck",
         lambda _, at: Planting((StuckMigChange(at.node),), deeds=(CutGpus(at.node),), says="all-1g.10gb"),
         lambda seen: seen.mig_state == "pending", ("mig-change-stuck",), 20 * MINUTE, is_of_gpu=False,
         needs_telemetry=False),
    Kind("inference-takes-turns", lambda _, at: Planting(deeds=(ShareGpus(at.node),), says="time-sliced"),
         lambda seen: seen.takes_turns, ("inference-on-time-slices",), 5 * MINUTE, is_of_gpu=False,
         fits=lambda at: at.workload_class == "inference" and at.has_pods, needs_telemetry=False),
    Kind("rejected-for-good",
         lambda _, __: Planting(deeds=(StartWork(STATEFUL_SET, "evaluation", "judge", quota=4, pods=2, gpus=8),),
                                says="ResourceQuota evaluation/gpus allows in total"),
         lambda seen: seen.is_rejected("evaluation"), ("pods-rejected",), 5 * MINUTE, is_of_gpu=False,
         of_cluster="StatefulSet evaluation/judge", needs_telemetry=False),
    Kind("rejected-for-now",
         lambda _, __: Planting(deeds=(StartWork(JOB, "sweeps", "grid", quota=2, pods=3, gpus=1),),
                                says="ResourceQuota sweeps/gpus is used up"),
         lambda seen: seen.is_rejected("sweeps"), ("pods-rejected",), 5 * MINUTE, is_of_gpu=False,
         of_cluster="Job sweeps/grid", needs_telemetry=False),
    Kind("lost-gpus", lambda draw, at: _one(LostGpus(at.node, gpus=draw.randint(1, at.gpus))),
         lambda seen: seen.allocatable < seen.place.gpus, ("allocatable-below-expected",), 1 * MINUTE,
         is_of_gpu=False, needs_telemetry=False),
    Kind("flapping-node",
         lambda draw, at: _one(FlappingNode(at.node, ready_s=draw.uniform(40, 400), unready_s=draw.uniform(150, 400))),
         lambda seen: seen.readiness != "True", ("node-not-ready",), 1 * MINUTE, is_of_gpu=False,
         needs_telemetry=False, leaves=("node-flapping",)),
    Kind(QUICK, lambda draw, at: _one(FlappingNode(at.node, draw.uniform(40, 200), draw.uniform(15, 45))),
         lambda seen: seen.falls >= 3, ("node-flapping",), is_of_gpu=False, needs_telemetry=False),
    Kind("node-condition", _condition,
         lambda seen: any(map(seen.is_true, NVSENTINEL + DETECTOR)), ("node-conditions",), 1 * MINUTE, is_of_gpu=False,
         needs_telemetry=False),
    Kind("runtime-race", lambda draw, at: _one(RuntimeRace(at.node, seconds=draw.uniform(240, 900)), "not ready"),
         lambda seen: seen.readiness != "True", ("node-not-ready",), 1 * MINUTE, is_of_gpu=False,
         needs_telemetry=False, leaves=("pods-failing",)),
    Kind("left-paused", lambda _, at: _one(LeftPaused(at.node)),
         lambda seen: any(str(text).startswith("paused-for") for text in seen.node["metadata"]["labels"].values()),
         ("paused-operands",), 10 * MINUTE, is_of_gpu=False, needs_telemetry=False),
    Kind("failing-workload", lambda _, at: _one(FailingWorkload(at.node)), lambda seen: seen.has_crashing_pods,
         ("workload-fails-here", "pods-failing"), 5 * MINUTE, is_of_gpu=False, fits=lambda at: at.has_pods,
         needs_telemetry=False),
    # Two whole hours of the clock, up to one until the first begins, and ten minutes until the last is written. Of one
    # that was not heard for a tenth of it nobody knows. Pools have more patience.
    Kind("idle-for-hours", lambda _, at: _one(IdleHolder(at.node)), _does_nothing, ("idle-gpus",), 190 * MINUTE,
         lacks_s=6 * MINUTE, is_of_gpu=False, fits=lambda at: at.has_pods and not at.workload_class),
    Kind("plugin-crashes", lambda _, at: _one(BrokenOperand(Ailment.CRASH, node=at.node)),
         lambda seen: seen.has_crashing_pods, ("operand-down", "pods-failing"), 1 * MINUTE, is_of_gpu=False,
         needs_telemetry=False),
    Kind("exporter-crashes", lambda _, at: _one(BrokenOperand(Ailment.CRASH, app=EXPORTER, node=at.node)),
         lambda seen: seen.is_silent, ("operand-down",), 1 * MINUTE + 90, is_of_gpu=False),
    Kind("tainted", lambda _, at: _one(TaintedNode(at.node, effect="NoExecute")),
         lambda seen: seen.allocatable < seen.place.gpus, ("operand-down",), 1 * MINUTE, is_of_gpu=False,
         needs_telemetry=False),
    Kind("exporter-silent", _silent, lambda seen: seen.is_silent, ("exporter-silent",), 2 * MINUTE + 90,
         is_of_gpu=False),
    Kind("exporter-skewed",
         lambda draw, at: _one(SkewedExporter(at.node, seconds=draw.choice((-7200.0, -900.0, 1800.0, 86400.0)))),
         lambda seen: seen.is_silent, ("exporter-silent",), 2 * MINUTE + 90, is_of_gpu=False),
    Kind("upgrade-awaits", _let_go_with(Stubborn.AWAITED), lambda seen: seen.is_at_work, ("upgrade-stuck",),
         30 * MINUTE, fits=lambda at: at.has_room, **UPGRADE),
    Kind("upgrade-without-validator",
         lambda _, at: Planting(deeds=(WithoutValidator(at.node), LetGo(at.node)), says="alidator"),
         lambda seen: seen.is_at_work, ("upgrade-stuck",), 30 * MINUTE, **UPGRADE),
    Kind("upgrade-without-image",
         lambda _, at: _release(at, BrokenOperand(Ailment.IMAGE, node=at.node, version=DRIVER_NEXT), says="image"),
         lambda seen: seen.is_at_work, ("upgrade-stuck",), 30 * MINUTE, **UPGRADE),
    # While a DaemonSet of the driver wants a pod more than it has, the operator moves no node of the cluster.
    Kind("upgrade-without-pod", lambda _, at: _release(at, RefusedPods(at.node), says="admission webhook"),
         lambda seen: seen.is_at_work, ("upgrade-stuck",), 30 * MINUTE, is_alone=True, **UPGRADE),
    Kind("upgrade-held", lambda _, at: _release(at, HeldDriver(at.node), says="k8s-driver-manager"),
         lambda seen: seen.upgrade_state == UpgradeState.FAILED, ("upgrade-failed",), 1 * MINUTE, **UPGRADE),
    Kind("upgrade-unmanaged", _let_go_with(Stubborn.ALONE), lambda seen: seen.upgrade_state == UpgradeState.FAILED,
         ("upgrade-failed",), 1 * MINUTE, fits=lambda at: at.has_room, **UPGRADE),
    Kind("upgrade-keeps-files", _let_go_with(Stubborn.FILES), lambda seen: seen.upgrade_state == UpgradeState.FAILED,
         ("upgrade-failed",), 1 * MINUTE, fits=lambda at: at.has_room, **UPGRADE),
    Kind("upgrade-budget", _let_go_with(Stubborn.BUDGET), lambda seen: seen.upgrade_state == UpgradeState.FAILED,
         ("upgrade-failed",), 1 * MINUTE, fits=lambda at: at.has_room, **UPGRADE),
    Kind("bad-driver",
         lambda _, at: _release(at, BadDriver(DRIVER_NEXT, how=Harm.CRASH, node=at.node), says="nvidia-driver-ctr"),
         lambda seen: seen.upgrade_state == UpgradeState.FAILED, ("upgrade-failed",), 1 * MINUTE, **UPGRADE),
    # After ten minutes the operator gives it up, and takes it for done: its driver pod is ready.
    Kind("bad-driver-invalid",
         lambda _, at: _release(at, BadDriver(DRIVER_NEXT, how=Harm.VALIDATOR, node=at.node), says="validator"),
         lambda seen: seen.has_crashing_pods, ("pods-failing",), 1 * MINUTE, **UPGRADE),
    Kind("bad-driver-loses-gpus",
         lambda draw, at: _release(at, BadDriver(DRIVER_NEXT, "", Harm.GPUS_LOST, draw.randint(1, at.gpus), at.node)),
         lambda seen: seen.upgrade_state == UpgradeState.DONE and seen.allocatable < seen.place.gpus,
         ("allocatable-below-expected",), 1 * MINUTE, **UPGRADE),
    Kind("bad-driver-breaks-pods",
         lambda _, at: _release(at, BadDriver(DRIVER_NEXT, how=Harm.WORKLOADS, node=at.node)),
         lambda seen: seen.upgrade_state == UpgradeState.DONE and seen.has_crashing_pods,
         ("workload-fails-here", "pods-failing"), 5 * MINUTE, fits=lambda at: at.is_of_one_job, **UPGRADE),
    Kind("versions-disagree", lambda _, at: _release(at, StaleLabels(at.node), says=DRIVER_NEXT),
         lambda seen: seen.upgrade_state == UpgradeState.DONE and seen.driver_label == DRIVER_NOW,
         ("versions-disagree",), 10 * MINUTE, **UPGRADE),
    Kind("cordon-removed",
         lambda _, at: Planting((UncordoningManager(at.node),), deeds=(Cordon(at.node), After(MINUTE, LetGo(at.node)))),
         lambda seen: seen.is_uncordoned_under_way, ("cordon-removed",), **UPGRADE),
    Kind("upgrade-queue-still",
         lambda _, at: Planting(says=at.neighbour, deeds=(OneAtATime(at.owner, at.neighbour), LetGo(at.node))),
         lambda seen: seen.upgrade_state == UpgradeState.REQUIRED and seen.still_s >= 10 * MINUTE,
         ("upgrade-queue-still",), 20 * MINUTE, fits=lambda at: bool(at.neighbour), is_alone=True, rests_s=20 * MINUTE,
         of_cluster="driver upgrades", **UPGRADE),
    Kind("series-explosion", lambda draw, at: _one(SeriesExplosion(at.node, series=draw.randint(3000, 20_000))),
         lambda seen: max(seen.target.numbers.values(), default=0) > 2000, ("series-explosion",), 5 * MINUTE,
         is_of_gpu=False, of_cluster="telemetry"),  # its source is looked at every five minutes
    Kind("operator-off", lambda _, __: Planting(deeds=(SwitchOperatorOff(),), says="scaled to 0"),
         lambda seen: seen.is_operator_down, ("operator-down",), 2 * MINUTE, is_of_gpu=False,
         of_cluster="GPU operator", needs_telemetry=False),
    Kind("old-runtime", lambda _, at: Planting(deeds=(OldRuntime(at.node),), says="1.7.24"),
         lambda seen: seen.runtime == "containerd://1.7.24", ("unsupported-combination",), 30 * MINUTE,
         is_of_gpu=False, of_cluster="GPU stack", needs_telemetry=False, visible_within_s=3 * MINUTE),
)  # fmt: skip

HARMLESS: tuple[Kind, ...] = (
    Kind("warm", lambda draw, at: _one(HotGpu(at.node, at.gpu, celsius=draw.uniform(70, 81), clock_ratio=1.0))),
    Kind("hot-for-a-moment", lambda _, at: _one(HotGpu(at.node, at.gpu, celsius=88.0, clock_ratio=1.0))),
    Kind("few-corrected", lambda draw, at: _one(EccErrors(at.node, at.gpu, corrected_per_hour=draw.uniform(1, 60)))),
    Kind("few-replays", lambda draw, at: _one(PcieReplays(at.node, at.gpu, per_minute=draw.uniform(0.01, 0.5)))),
    Kind("few-link-errors",
         lambda draw, at: _one(NvlinkErrors(at.node, at.gpu, LinkError.REPLAY, per_minute=draw.uniform(0.1, 0.9)))),
    Kind("rows-remapped-in-time", lambda _, at: _one(RowRemap(at.node, at.gpu, Remap.CORRECTABLE))),
    Kind("ignored-xid", _xid(IGNORED)),
    Kind("power-cap", lambda _, at: _one(ThrottledGpu(at.node, at.gpu, "power_cap", clock_ratio=0.9))),
    Kind("idle", lambda _, at: _one(IdleHolder(at.node)), is_of_gpu=False),
    Kind("reset", lambda _, at: _one(GpuResets(at.node, at.gpu))),
    Kind("skewed-a-little", lambda draw, at: _one(SkewedExporter(at.node, seconds=draw.uniform(-25, 25))),
         is_of_gpu=False),
    Kind("another-name", lambda _, at: _one(LyingExporter(at.node, "localhost", Lie.HOSTNAME)), is_of_gpu=False),
    Kind("boots-quickly", lambda draw, at: _one(FlappingNode(at.node, ready_s=1e6, unready_s=draw.uniform(5, 40))),
         is_of_gpu=False),
    Kind("exporter-restarts", lambda _, at: Planting(deeds=(RestartExporter(at.node),)), is_of_gpu=False),
    Kind("rejected-for-a-moment",
         lambda _, __: Planting(deeds=(StartWork(REPLICA_SET, "previews", "canvas", quota=1, pods=2, gpus=1),)),
         is_of_gpu=False, of_cluster="ReplicaSet previews/canvas"),
    Kind("driver-upgrade", lambda _, at: Planting(deeds=(LetGo(at.node),)), is_of_gpu=False, is_upgrade=True),
)  # fmt: skip
KINDS = {kind.name: kind for kind in (*FOUND, *HARMLESS)}
# How long these are on, where that is what makes them harmless.
BRIEF = {"hot-for-a-moment": 2 * MINUTE, "rejected-for-a-moment": 2 * MINUTE}
