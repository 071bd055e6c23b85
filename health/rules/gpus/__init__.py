"""Rules about GPUs by their exporter's data: one pure file per rule. To add a rule, add its line here."""

from health.rules.gpus.base import GpuRule
from health.rules.gpus.called_unhealthy import CalledUnhealthy
from health.rules.gpus.dcgm_health import DcgmHealth
from health.rules.gpus.ecc_corrected import EccCorrected
from health.rules.gpus.ecc_uncorrected import EccUncorrected
from health.rules.gpus.fabric import Fabric
from health.rules.gpus.hot import Hot
from health.rules.gpus.memory_nearly_full import MemoryNearlyFull
from health.rules.gpus.nvlink_errors import NvlinkErrors
from health.rules.gpus.nvlink_quiet import NvlinkQuiet
from health.rules.gpus.pcie_replays import PcieReplays
from health.rules.gpus.power_near_limit import PowerNearLimit
from health.rules.gpus.recovery_action import RecoveryActionNeeded
from health.rules.gpus.resets import Resets
from health.rules.gpus.row_remap import RowRemap
from health.rules.gpus.silent import GpuSilent
from health.rules.gpus.throttled import Throttled
from health.rules.gpus.xid import LastXid

GPU_RULES: tuple[GpuRule, ...] = (
    LastXid(),
    RecoveryActionNeeded(),
    Resets(),
    GpuSilent(),
    Hot(),
    EccUncorrected(),
    EccCorrected(),
    RowRemap(),
    PcieReplays(),
    NvlinkErrors(),
    NvlinkQuiet(),
    Fabric(),
    Throttled(),
    DcgmHealth(),
    CalledUnhealthy(),
    MemoryNearlyFull(),
    PowerNearLimit(),
)
