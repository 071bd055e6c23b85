"""The counters an exporter may be set to write, and the file that sets it.

NVIDIA/dcgm-exporter, etc/default-counters.csv and etc/dcp-metrics-included.csv as 4.8.3 ships them, with the same rows:
name, type, help; `#` opens a comment. Its template ranges over a map of counters, which Go sorts by DCGM's field
(NVIDIA/DCGM, dcgmlib/dcgm_fields.h); those that the exporter makes itself follow.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

DRIVER_VERSION = "DCGM_FI_DRIVER_VERSION"
XID = "DCGM_FI_DEV_XID_ERRORS"
NVLINK = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
XID_COUNT, CLOCK_COUNT, HEALTH = (
    "DCGM_EXP_XID_ERRORS_COUNT",
    "DCGM_EXP_CLOCK_EVENTS_COUNT",
    "DCGM_EXP_GPU_HEALTH_STATUS",
)
PROFILING = "DCGM_FI_PROF_"
MOST_LINES = 500


class Choice(StrEnum):
    """Which counters a cluster's operator switches on."""

    SHIPPED = "shipped"
    ALL = "all"
    UNPROFILED = "unprofiled"  # without those of DCGM's profiling module


@dataclass(frozen=True, slots=True)
class Counter:
    name: str
    type: str
    help: str


# Every field that this simulator has a value of, by number.
FIELDS: dict[str, int] = {
    "DCGM_FI_DEV_SM_CLOCK": 100,
    "DCGM_FI_DEV_MEM_CLOCK": 101,
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 112,
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": 112,
    "DCGM_FI_DEV_MEMORY_TEMP": 140,
    "DCGM_FI_DEV_GPU_TEMP": 150,
    "DCGM_FI_DEV_POWER_USAGE": 155,
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 156,
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": 160,
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": 202,
    "DCGM_FI_DEV_GPU_UTIL": 203,
    "DCGM_FI_DEV_MEM_COPY_UTIL": 204,
    "DCGM_FI_DEV_ENC_UTIL": 206,
    "DCGM_FI_DEV_DEC_UTIL": 207,
    XID: 230,
    "DCGM_FI_DEV_POWER_VIOLATION": 240,
    "DCGM_FI_DEV_THERMAL_VIOLATION": 241,
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": 242,
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": 243,
    "DCGM_FI_DEV_LOW_UTIL_VIOLATION": 244,
    "DCGM_FI_DEV_RELIABILITY_VIOLATION": 245,
    "DCGM_FI_DEV_FB_FREE": 251,
    "DCGM_FI_DEV_FB_USED": 252,
    "DCGM_FI_DEV_FB_RESERVED": 253,
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": 310,
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": 311,
    "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL": 312,
    "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": 313,
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": 393,
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": 394,
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": 395,
    "DCGM_FI_DEV_ROW_REMAP_PENDING": 396,
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 409,
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": 419,
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL": 429,
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 439,
    NVLINK: 449,
    "DCGM_FI_DEV_VGPU_LICENSE_STATUS": 526,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1001,
    "DCGM_FI_PROF_SM_ACTIVE": 1002,
    "DCGM_FI_PROF_SM_OCCUPANCY": 1003,
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": 1004,
    "DCGM_FI_PROF_DRAM_ACTIVE": 1005,
    "DCGM_FI_PROF_PCIE_TX_BYTES": 1009,
    "DCGM_FI_PROF_PCIE_RX_BYTES": 1010,
    XID_COUNT: 9001,
    CLOCK_COUNT: 9002,
    HEALTH: 9003,
}
# The fields whose type is double; a value of the others is a whole number.
DOUBLES = frozenset(
    {
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_POWER_MGMT_LIMIT",
        "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
        "DCGM_FI_PROF_SM_ACTIVE",
        "DCGM_FI_PROF_SM_OCCUPANCY",
        "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
        "DCGM_FI_PROF_DRAM_ACTIVE",
    }
)
# What NVML does not say of a GPU that is cut: the field is blank there, and the exporter leaves it out.
BLANK_UNDER_MIG = frozenset(
    {"DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_MEM_COPY_UTIL", "DCGM_FI_DEV_ENC_UTIL", "DCGM_FI_DEV_DEC_UTIL"}
)

SHIPPED = """
DCGM_FI_DEV_SM_CLOCK,  gauge, SM clock frequency (in MHz).
DCGM_FI_DEV_MEM_CLOCK, gauge, Memory clock frequency (in MHz).
DCGM_FI_DEV_MEMORY_TEMP, gauge, Memory temperature (in C).
DCGM_FI_DEV_GPU_TEMP,    gauge, GPU temperature (in C).
DCGM_FI_DEV_POWER_USAGE,              gauge, Power draw (in W).
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, Total energy consumption since boot (in mJ).
DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, Total number of PCIe retries.
DCGM_FI_DEV_GPU_UTIL,      gauge, GPU utilization (in %).
DCGM_FI_DEV_MEM_COPY_UTIL, gauge, Memory utilization (in %).
DCGM_FI_DEV_ENC_UTIL,      gauge, Encoder utilization (in %).
DCGM_FI_DEV_DEC_UTIL ,     gauge, Decoder utilization (in %).
DCGM_FI_DEV_XID_ERRORS,            gauge,   Value of the last XID error encountered.
# DCGM_FI_DEV_POWER_VIOLATION,       counter, Throttling duration due to power constraints (in ns).
# DCGM_FI_DEV_THERMAL_VIOLATION,     counter, Throttling duration due to thermal constraints (in ns).
# DCGM_FI_DEV_SYNC_BOOST_VIOLATION,  counter, Throttling duration due to sync-boost constraints (in ns).
# DCGM_FI_DEV_BOARD_LIMIT_VIOLATION, counter, Throttling duration due to board limit constraints (in ns).
# DCGM_FI_DEV_LOW_UTIL_VIOLATION,    counter, Throttling duration due to low utilization (in ns).
# DCGM_FI_DEV_RELIABILITY_VIOLATION, counter, Throttling duration due to reliability constraints (in ns).
# DCGM_EXP_CLOCK_EVENTS_COUNT, gauge,   Clock events observed during the configured time window.
# DCGM_EXP_XID_ERRORS_COUNT,   gauge,   XID errors observed during the configured time window.
# DCGM_EXP_GPU_HEALTH_STATUS,  gauge,   Current DCGM-reported GPU health status.
DCGM_FI_DEV_FB_FREE, gauge, Framebuffer memory free (in MiB).
DCGM_FI_DEV_FB_USED, gauge, Framebuffer memory used (in MiB).
DCGM_FI_DEV_FB_RESERVED, gauge, Framebuffer memory reserved (in MiB).
# DCGM_FI_DEV_ECC_SBE_VOL_TOTAL, counter, Total number of single-bit volatile ECC errors.
# DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, Total number of double-bit volatile ECC errors.
# DCGM_FI_DEV_ECC_SBE_AGG_TOTAL, counter, Total number of single-bit persistent ECC errors.
# DCGM_FI_DEV_ECC_DBE_AGG_TOTAL, counter, Total number of double-bit persistent ECC errors.
# DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, counter, Total number of NVLink flow-control CRC errors.
# DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL, counter, Total number of NVLink data CRC errors.
# DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL,   counter, Total number of NVLink retries.
# DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL, counter, Total number of NVLink recovery errors.
DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL,            gauge,   Total number of NVLink bandwidth counters for all lanes.
DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, vGPU License status
DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS, counter, Number of remapped rows for uncorrectable errors
DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS,   counter, Number of remapped rows for correctable errors
DCGM_FI_DEV_ROW_REMAP_FAILURE,           gauge,   Whether remapping of rows has failed
DCGM_FI_DRIVER_VERSION,        label, Driver Version
DCGM_FI_PROF_GR_ENGINE_ACTIVE,   gauge, Ratio of time the graphics engine is active.
# DCGM_FI_PROF_SM_ACTIVE,          gauge, The ratio of cycles an SM has at least 1 warp assigned.
# DCGM_FI_PROF_SM_OCCUPANCY,       gauge, The ratio of number of warps resident on an SM.
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, Ratio of cycles the tensor (HMMA) pipe is active.
DCGM_FI_PROF_DRAM_ACTIVE,        gauge, Ratio of cycles the device memory interface is active sending or receiving data.
DCGM_FI_PROF_PCIE_TX_BYTES,      gauge, The rate of data transmitted over the PCIe bus - including both protocol \
headers and data payloads - in bytes per second.
DCGM_FI_PROF_PCIE_RX_BYTES,      gauge, The rate of data received over the PCIe bus - including both protocol \
headers and data payloads - in bytes per second.
""".replace("\\\n", "")
# What people add to a file of their own, beside the shipped rows that they switch on.
EXTRA = """
DCGM_FI_DEV_CLOCKS_EVENT_REASONS, gauge, Current clock event reasons (bitmask).
DCGM_FI_DEV_ROW_REMAP_PENDING,    gauge, Whether remapping of rows is pending
DCGM_FI_DEV_POWER_MGMT_LIMIT,     gauge, Power management limit (in W).
"""


class UnreadableCounters(ValueError):
    """A file that the exporter ends with."""


def parse(text: str) -> tuple[Counter, ...]:
    """In the order in which they are written; of two rows the last is right. Fields nobody here has are left out.

    :raises UnreadableCounters:
    """
    found: dict[str, Counter] = {}
    for line in text.splitlines()[:MOST_LINES]:
        row = line.strip()
        if not row or row.startswith("#"):
            continue
        parts = [part.strip() for part in row.split(",", 2)]
        if len(parts) != 3 or parts[1] not in ("gauge", "counter", "label"):
            raise UnreadableCounters(f"{row!r} is not NAME, TYPE, HELP")
        found[parts[0]] = Counter(*parts)
    known = [counter for counter in found.values() if counter.name in FIELDS or counter.name == DRIVER_VERSION]
    return tuple(sorted(known, key=lambda counter: FIELDS.get(counter.name, 0)))


def everything() -> str:
    """A file with all of it switched on."""
    return "\n".join(line.removeprefix("# ") for line in (SHIPPED + EXTRA).splitlines() if line) + "\n"


def unprofiled() -> str:
    """The shipped file without the series that need DCGM's profiling module."""
    return "".join(f"{line}\n" for line in SHIPPED.splitlines() if line and not line.startswith(PROFILING))


def file_of(choice: Choice) -> str:
    """What its ConfigMap has; empty: there is none."""
    return {Choice.SHIPPED: "", Choice.ALL: everything(), Choice.UNPROFILED: unprofiled()}[choice]


def without(counters: Iterable[Counter], prefix: str) -> tuple[Counter, ...]:
    return tuple(counter for counter in counters if not counter.name.startswith(prefix))


def as_before_4_8_3(counters: Iterable[Counter]) -> tuple[Counter, ...]:
    """It called a rate a counter (dcgm-exporter #417): MiB a second go up and down."""
    return tuple(replace(each, type="counter") if each.name == NVLINK else each for each in counters)
