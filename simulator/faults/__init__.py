"""What can be wrong with the cluster, by name. A fault knows no threshold of anybody who watches it."""

from simulator.faults.api_gone import ApiGone
from simulator.faults.bad_driver import BadDriver
from simulator.faults.bad_image import BadImage
from simulator.faults.board import Board, Fault
from simulator.faults.breakfix import Breakfix
from simulator.faults.broken_operand import BrokenOperand
from simulator.faults.ecc_errors import EccErrors
from simulator.faults.error_500 import Error500
from simulator.faults.failing_workload import FailingWorkload
from simulator.faults.fallen_gpu import FallenGpu
from simulator.faults.flapping_node import FlappingNode
from simulator.faults.full_memory import FullMemory
from simulator.faults.gone_410 import Gone410
from simulator.faults.gpu_health import GpuHealth
from simulator.faults.gpu_resets import GpuResets
from simulator.faults.held_driver import HeldDriver
from simulator.faults.hot_gpu import HotGpu
from simulator.faults.idle_holder import IdleHolder
from simulator.faults.left_paused import LeftPaused
from simulator.faults.lost_gpus import LostGpus
from simulator.faults.lying_exporter import LyingExporter
from simulator.faults.node_condition import NodeCondition
from simulator.faults.nvlink_errors import NvlinkErrors
from simulator.faults.pcie_replays import PcieReplays
from simulator.faults.power_limit import PowerLimit
from simulator.faults.refused_pods import RefusedPods
from simulator.faults.row_remap import RowRemap
from simulator.faults.runtime_race import RuntimeRace
from simulator.faults.series_explosion import SeriesExplosion
from simulator.faults.silent_exporter import SilentExporter
from simulator.faults.skewed_exporter import SkewedExporter
from simulator.faults.slow_api import SlowApi
from simulator.faults.slow_nvlink import SlowNvlink
from simulator.faults.stale_labels import StaleLabels
from simulator.faults.stuck_drain import StuckDrain
from simulator.faults.stuck_mig_change import StuckMigChange
from simulator.faults.tainted_node import TaintedNode
from simulator.faults.throttled_gpu import ThrottledGpu
from simulator.faults.uncordoning_manager import UncordoningManager
from simulator.faults.xid import Xid

ON_THE_FLEET: tuple[type[Fault], ...] = (
    BadDriver,
    BadImage,
    Breakfix,
    BrokenOperand,
    FlappingNode,
    HeldDriver,
    LeftPaused,
    LostGpus,
    NodeCondition,
    RefusedPods,
    RuntimeRace,
    StaleLabels,
    StuckDrain,
    StuckMigChange,
    TaintedNode,
    UncordoningManager,
)
IN_A_GPU: tuple[type[Fault], ...] = (
    EccErrors,
    FailingWorkload,
    FallenGpu,
    FullMemory,
    GpuHealth,
    GpuResets,
    HotGpu,
    IdleHolder,
    NvlinkErrors,
    PcieReplays,
    PowerLimit,
    RowRemap,
    SlowNvlink,
    ThrottledGpu,
    Xid,
)
OF_AN_EXPORTER: tuple[type[Fault], ...] = (LyingExporter, SeriesExplosion, SilentExporter, SkewedExporter)
ON_THE_API: tuple[type[Fault], ...] = (ApiGone, Error500, Gone410, SlowApi)
FAULTS: dict[str, type[Fault]] = {
    fault.key: fault for fault in (*ON_THE_FLEET, *IN_A_GPU, *OF_AN_EXPORTER, *ON_THE_API)
}

__all__ = [
    "FAULTS",
    "BadDriver",
    "BadImage",
    "Board",
    "Breakfix",
    "BrokenOperand",
    "FailingWorkload",
    "FallenGpu",
    "Fault",
    "FlappingNode",
    "HeldDriver",
    "LeftPaused",
    "LostGpus",
    "NodeCondition",
    "RefusedPods",
    "RuntimeRace",
    "StaleLabels",
    "StuckDrain",
    "StuckMigChange",
    "TaintedNode",
    "UncordoningManager",
    "Xid",
]
