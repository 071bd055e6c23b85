"""The metrics of a GPU, with the names of their series. A new metric is a line here.

NVIDIA/dcgm-exporter, etc/default-counters.csv and etc/dcp-metrics-included.csv: names, types and units; lines behind a
# are exported only if enabled. ROCm/device-metrics-exporter, docs/configuration/metricslist.md: each name in lower
case, after the configured prefix (`amd_`, or none). docs.habana.ai, Orchestration, Prometheus Metric Exporter:
habanalabs_*.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from gpu.resources.names import Vendor


class MetricKind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"  # grows until the driver is reloaded
    LATCHED = "latched"  # keeps the last value until the driver is reloaded; a repeated value is not visible


@dataclass(frozen=True)
class Metric:
    key: str  # in REST, in facts, in a frame
    title: str
    unit: str = ""  # of the value, after its factor
    kind: MetricKind = MetricKind.GAUGE
    is_usual: bool = True  # exported unless somebody took it out
    is_missed: bool = True  # True: pages show if it is missing; False: few or one vendor's exporters have it
    # Limits of valid values: both exporters report wrong ones (NVIDIA/dcgm-exporter #312: 82505 °C; NVIDIA/DCGM #199: a
    # utilisation of thousands; ROCm/rocm-systems #6931: 2112 °C), and see BLANKS.
    least: float = 0.0
    most: float = 1e15


@dataclass(frozen=True)
class MetricSeries:
    """One exporter's name of a metric. One name may have several metrics, by the values of a label."""

    name: str
    metric: str  # its key
    factor: float = 1.0  # multiplies a value to get the metric's unit
    # A device has a series of it for each value of this label: its value is that of the highest. Blank: it has one.
    label: str = ""
    only: frozenset[str] = frozenset()  # values of the label that count; empty: all
    has_parts: bool = True  # values of each label value are stored in `base.Parts`
    is_blank_at_0: bool = False  # of a sensor that is not there, as of an L4's memory, and of an AMD GPU's in a VM

    @property
    def bounds(self) -> tuple[float, float]:
        """Returns the limits of valid exported values. NaN is never valid."""
        metric = METRICS[self.metric]
        least = max(metric.least, ABOVE_0) if self.is_blank_at_0 else metric.least
        return least / self.factor, metric.most / self.factor


# What exporters write where they know nothing: DCGM's blanks of 32 bits, of 64 bits and of floats, each with what says
# that it is not found, not supported or not permitted (NVIDIA/DCGM, dcgm_structs.h; older exporters print them, NVIDIA/
# gpu-monitoring-tools #92); all ones of 16, 32 and 64 bits (ROCm/device-metrics-exporter #662); 0 where it cannot be.
BLANKS = frozenset(
    map(float, (0, *range(2147483632, 2147483636), *range(1 << 47, (1 << 47) + 4), 2**63, 2**16 - 1, 2**32 - 1, 2**64))
)
SHARE = 1.1  # of one, measured: a ratio of two counters that are not read at the same moment may be a little more
COLD, HOT = -60.0, 150.0
ABOVE_0 = 1e-9
MIB = 1 << 26  # 64 TiB
WATTS, MHZ = 10_000, 10_000
COUNT = 2_000_000_000  # below the blank of 32 bits
NS = 1e18  # thirty years


def _table() -> dict[str, Metric]:
    gauge, counter, latched = MetricKind.GAUGE, MetricKind.COUNTER, MetricKind.LATCHED
    rows = (
        Metric("gpu_utilisation_ratio", "Utilisation", "", most=SHARE),
        Metric("engine_active_ratio", "Graphics engine active", "", most=SHARE),
        Metric("tensor_active_ratio", "Tensor cores active", "", most=SHARE),
        Metric("memory_active_ratio", "Memory bandwidth used", "", most=SHARE),
        Metric("memory_busy_ratio", "Memory busy", "", most=SHARE),
        Metric("memory_used_mib", "Memory used", "MiB", most=MIB),
        Metric("memory_free_mib", "Memory free", "MiB", most=MIB),
        Metric("temperature_celsius", "Temperature", "°C", least=COLD, most=HOT),
        Metric("memory_temperature_celsius", "Memory temperature", "°C", least=COLD, most=HOT),
        Metric("power_watts", "Power", "W", most=WATTS),
        Metric("power_limit_watts", "Power limit", "W", gauge, is_usual=False, most=WATTS),
        Metric("energy_joules", "Energy", "J", counter, most=1e11),  # three years of a kilowatt
        Metric("sm_clock_mhz", "SM clock", "MHz", most=MHZ),
        Metric("memory_clock_mhz", "Memory clock", "MHz", most=MHZ),
        Metric("xid", "Last Xid", "", latched, most=10_000),
        Metric("ecc_corrected", "ECC errors corrected", "", counter, is_usual=False, most=COUNT),
        Metric("ecc_uncorrected", "Uncorrected ECC errors", "", counter, is_usual=False, most=COUNT),
        Metric("rows_remapped_corrected", "Rows remapped for corrected errors", "", counter, most=COUNT),
        Metric("rows_remapped_uncorrected", "Rows remapped for uncorrected errors", "", counter, most=COUNT),
        Metric("row_remap_failed", "Row remapping failed", "", gauge, most=1.0),
        Metric("row_remap_pending", "Row remapping pending", "", gauge, is_usual=False, most=1.0),
        Metric("pcie_replays", "PCIe replays", "", counter, most=COUNT),
        Metric("pcie_transmitted", "PCIe sent", "B/s", most=1e12),
        Metric("pcie_received", "PCIe received", "B/s", most=1e12),
        Metric("nvlink_mib_per_s", "NVLink traffic", "MiB/s", most=1e12),
        Metric("nvlink_flit_errors", "NVLink CRC flit errors", "", counter, is_usual=False),
        Metric("nvlink_data_errors", "NVLink CRC data errors", "", counter, is_usual=False),
        Metric("nvlink_replays", "NVLink replays", "", counter, is_usual=False),
        Metric("nvlink_recoveries", "NVLink recoveries", "", counter, is_usual=False),
        Metric("throttled_power", "Throttled by power", "", counter, is_usual=False, most=NS),
        Metric("throttled_thermal", "Throttled by heat", "", counter, is_usual=False, most=NS),
        Metric("throttled_board", "Throttled by the board's limit", "", counter, is_usual=False, most=NS),
        Metric("throttled_reliability", "Throttled by reliability", "", counter, is_usual=False, most=NS),
        Metric(
            "clock_reasons", "Reasons for the present clocks", "", gauge, is_usual=False, most=0xFFFF
        ),  # bits: `SLOWED_BY`
        Metric("clock_events", "Recently throttled", "", gauge, is_usual=False, most=COUNT),
        Metric("xids_counted", "Xids of late", "", gauge, is_usual=False, most=COUNT),
        # 0 well, 10 warning, 20 failure
        Metric("dcgm_health", "DCGM's health check", "", gauge, is_usual=False, most=20),
        # Each by a number of NVML's or DCGM's: `gpu.xids.RECOVERY_ACTIONS`, `rules.gpus.fabric`.
        Metric("recovery_action", "Recovery action", is_usual=False, is_missed=False, most=100),
        Metric("fabric_manager_status", "Fabric Manager", is_usual=False, is_missed=False, most=100),
        Metric("fabric_health", "NVLink fabric health mask", is_usual=False, is_missed=False, most=0xFFFF),
        Metric("called_healthy", "Reported healthy by its exporter", is_usual=False, is_missed=False, most=1.0),
    )
    return {row.key: row for row in rows}


METRICS: Mapping[str, Metric] = _table()


def missing_metrics(exported: Collection[str]) -> tuple[list[Metric], list[Metric]]:
    """Returns missing metrics: those exported by default, and those that must be enabled."""
    usual, others = list[Metric](), list[Metric]()
    for key, metric in METRICS.items():
        if key not in exported and metric.is_missed:
            (usual if metric.is_usual else others).append(metric)
    return usual, others


class Slowing(NamedTuple):
    bit: int
    reason: str


# What slows a GPU down beyond the limit of its power, which is how one should be (Z28): the bits of DCGM's field of the
# reasons, DCGM_CLOCKS_EVENT_REASON_*, by the names that its exporter counts them by. The hardware's slowdown alone is
# its answer to heat, to the power brake or to a fast rise.
SLOWED_BY: Mapping[str, Slowing] = {
    "hw_slowdown": Slowing(0x8, "its hardware lowers its clocks"),
    "sw_thermal": Slowing(0x20, "it is too hot"),
    "hw_thermal": Slowing(0x40, "it is too hot"),
    "hw_power_brake": Slowing(0x80, "its board is at a limit (power brake, supply)"),
}
SLOWING_BITS = sum(each.bit for each in SLOWED_BY.values())
PERCENT = 0.01
MILLI = 0.001
BYTES_IN_MIB = 1 / (1 << 20)
_DCGM = (
    MetricSeries("DCGM_FI_DEV_GPU_UTIL", "gpu_utilisation_ratio", PERCENT),
    MetricSeries("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "engine_active_ratio"),
    MetricSeries("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "tensor_active_ratio"),
    MetricSeries("DCGM_FI_PROF_DRAM_ACTIVE", "memory_active_ratio"),
    # Of the time, in how much memory was read or written at all: by NVML, where nothing is profiled, too.
    MetricSeries("DCGM_FI_DEV_MEM_COPY_UTIL", "memory_busy_ratio", PERCENT),
    MetricSeries("DCGM_FI_DEV_FB_USED", "memory_used_mib"),
    MetricSeries("DCGM_FI_DEV_FB_FREE", "memory_free_mib"),
    MetricSeries("DCGM_FI_DEV_GPU_TEMP", "temperature_celsius"),
    MetricSeries("DCGM_FI_DEV_MEMORY_TEMP", "memory_temperature_celsius", is_blank_at_0=True),
    MetricSeries("DCGM_FI_DEV_POWER_USAGE", "power_watts"),
    MetricSeries("DCGM_FI_DEV_POWER_MGMT_LIMIT", "power_limit_watts"),
    MetricSeries("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "energy_joules", MILLI),
    MetricSeries("DCGM_FI_DEV_SM_CLOCK", "sm_clock_mhz"),
    MetricSeries("DCGM_FI_DEV_MEM_CLOCK", "memory_clock_mhz"),
    MetricSeries("DCGM_FI_DEV_XID_ERRORS", "xid"),
    MetricSeries("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "ecc_corrected"),
    MetricSeries("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "ecc_uncorrected"),
    MetricSeries("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "rows_remapped_corrected"),
    MetricSeries("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "rows_remapped_uncorrected"),
    MetricSeries("DCGM_FI_DEV_ROW_REMAP_FAILURE", "row_remap_failed"),
    MetricSeries("DCGM_FI_DEV_ROW_REMAP_PENDING", "row_remap_pending"),
    MetricSeries("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "pcie_replays"),
    MetricSeries("DCGM_FI_PROF_PCIE_TX_BYTES", "pcie_transmitted"),
    MetricSeries("DCGM_FI_PROF_PCIE_RX_BYTES", "pcie_received"),
    # A rate, and called a counter by exporters before 4.8.3 (dcgm-exporter #417, #658).
    MetricSeries("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "nvlink_mib_per_s"),
    MetricSeries("DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "nvlink_flit_errors"),
    MetricSeries("DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", "nvlink_data_errors"),
    MetricSeries("DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "nvlink_replays"),
    MetricSeries("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", "nvlink_recoveries"),
    # In µs or ns, depending on the exporter's version: only growth is known, not its length.
    MetricSeries("DCGM_FI_DEV_POWER_VIOLATION", "throttled_power"),
    MetricSeries("DCGM_FI_DEV_THERMAL_VIOLATION", "throttled_thermal"),
    MetricSeries("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "throttled_board"),
    MetricSeries("DCGM_FI_DEV_RELIABILITY_VIOLATION", "throttled_reliability"),
    MetricSeries("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "clock_reasons"),
    MetricSeries("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "clock_reasons"),  # as it was called before
    # The exporter's own: how many within its window, five minutes unless somebody set another.
    MetricSeries("DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_events", label="clock_event", only=frozenset(SLOWED_BY)),
    MetricSeries("DCGM_EXP_XID_ERRORS_COUNT", "xids_counted", label="xid"),
    MetricSeries("DCGM_EXP_GPU_HEALTH_STATUS", "dcgm_health", label="health_watch"),
    MetricSeries("DCGM_FI_DEV_GPU_RECOVERY_ACTION", "recovery_action"),
    MetricSeries("DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION", "recovery_action"),  # as it was called before
    MetricSeries("DCGM_FI_DEV_FABRIC_MANAGER_STATUS", "fabric_manager_status"),
    MetricSeries("DCGM_FI_DEV_FABRIC_HEALTH_MASK", "fabric_health"),
)
# Names of DCGM's exporter before 2.0, and with etc/1.x-compatibility-metrics.csv (#188). Its ratios in % are not read.
_NAMES_OF_1 = {
    "dcgm_gpu_utilization": "DCGM_FI_DEV_GPU_UTIL",
    "dcgm_fi_prof_gr_engine_active": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "dcgm_fi_prof_pipe_tensor_active": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "dcgm_fi_prof_dram_active": "DCGM_FI_PROF_DRAM_ACTIVE",
    "dcgm_mem_copy_utilization": "DCGM_FI_DEV_MEM_COPY_UTIL",
    "dcgm_fb_used": "DCGM_FI_DEV_FB_USED",
    "dcgm_fb_free": "DCGM_FI_DEV_FB_FREE",
    "dcgm_gpu_temp": "DCGM_FI_DEV_GPU_TEMP",
    "dcgm_memory_temp": "DCGM_FI_DEV_MEMORY_TEMP",
    "dcgm_power_usage": "DCGM_FI_DEV_POWER_USAGE",
    "dcgm_total_energy_consumption": "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
    "dcgm_sm_clock": "DCGM_FI_DEV_SM_CLOCK",
    "dcgm_memory_clock": "DCGM_FI_DEV_MEM_CLOCK",
    "dcgm_xid_errors": "DCGM_FI_DEV_XID_ERRORS",
    "dcgm_ecc_sbe_volatile_total": "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "dcgm_ecc_dbe_volatile_total": "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "dcgm_pcie_replay_counter": "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "dcgm_fi_prof_pcie_tx_bytes": "DCGM_FI_PROF_PCIE_TX_BYTES",
    "dcgm_fi_prof_pcie_rx_bytes": "DCGM_FI_PROF_PCIE_RX_BYTES",
    "dcgm_nvlink_bandwidth_total": "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "dcgm_nvlink_flit_crc_error_count_total": "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "dcgm_nvlink_data_crc_error_count_total": "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "dcgm_nvlink_replay_error_count_total": "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "dcgm_nvlink_recovery_error_count_total": "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    "dcgm_power_violation": "DCGM_FI_DEV_POWER_VIOLATION",
    "dcgm_thermal_violation": "DCGM_FI_DEV_THERMAL_VIOLATION",
    "dcgm_board_limit_violation": "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION",
    "dcgm_reliability_violation": "DCGM_FI_DEV_RELIABILITY_VIOLATION",
}
# Rates that files of counters of some versions call counters.
_CALLED_COUNTERS = ("pcie_transmitted", "pcie_received", "nvlink_mib_per_s")
DCGM = (
    *_DCGM,
    *(replace(row, name=old) for old, name in _NAMES_OF_1.items() for row in _DCGM if row.name == name),
    # As OpenTelemetry writes counters that it passes on (opentelemetry-collector-contrib, pkg/translator/prometheus).
    *(
        replace(row, name=f"{row.name}_total")
        for row in _DCGM
        if METRICS[row.metric].kind is MetricKind.COUNTER or row.metric in _CALLED_COUNTERS
    ),
)


def _clock_names(kind: str) -> frozenset[str]:
    """Returns the names in ROCm/device-metrics-exporter now (metricslist.md, GPU_CLOCK measurements) and before."""
    return frozenset({kind, f"GPU_CLOCK_TYPE_{kind.upper()}"})


_AMD = (
    MetricSeries("gpu_gfx_activity", "gpu_utilisation_ratio", PERCENT),
    MetricSeries("gpu_umc_activity", "memory_active_ratio", PERCENT),
    MetricSeries("gpu_used_vram", "memory_used_mib"),
    MetricSeries("gpu_free_vram", "memory_free_mib"),
    MetricSeries("gpu_edge_temperature", "temperature_celsius", is_blank_at_0=True),  # MI2xx
    MetricSeries("gpu_junction_temperature", "temperature_celsius", is_blank_at_0=True),  # MI3xx
    MetricSeries("gpu_memory_temperature", "memory_temperature_celsius", is_blank_at_0=True),
    MetricSeries("gpu_power_usage", "power_watts", is_blank_at_0=True),
    MetricSeries("gpu_average_package_power", "power_watts", is_blank_at_0=True),  # MI2xx
    MetricSeries("gpu_package_power", "power_watts", is_blank_at_0=True),  # MI3xx
    MetricSeries("gpu_energy_consumed", "energy_joules", 1e-6),
    MetricSeries("gpu_ecc_correct_total", "ecc_corrected"),
    MetricSeries("gpu_ecc_uncorrect_total", "ecc_uncorrected"),
    MetricSeries("pcie_replay_count", "pcie_replays"),
    # 1, or 0 of a GPU with more errors than its exporter's thresholds allow, or with a fatal one; none where it cannot
    # tell (pkg/amdgpu/gpuagent/gpuagent_gpu_metrics.go).
    MetricSeries("gpu_health", "called_healthy"),
    # In MHz, one per clock: an MI3xx has a system clock for each of its dies.
    MetricSeries("gpu_clock", "sm_clock_mhz", label="clock_type", only=_clock_names("system"), has_parts=False),
    MetricSeries("gpu_clock", "memory_clock_mhz", label="clock_type", only=_clock_names("memory"), has_parts=False),
)
AMD = (*_AMD, *(replace(series, name=f"amd_{series.name}") for series in _AMD))
GAUDI = (
    MetricSeries("habanalabs_utilization", "gpu_utilisation_ratio", PERCENT),
    MetricSeries("habanalabs_memory_used_bytes", "memory_used_mib", BYTES_IN_MIB),
    MetricSeries("habanalabs_memory_free_bytes", "memory_free_mib", BYTES_IN_MIB),
    MetricSeries("habanalabs_temperature_onchip", "temperature_celsius"),
    MetricSeries("habanalabs_power_mW", "power_watts", MILLI),
    MetricSeries("habanalabs_power_default_limit_mW", "power_limit_watts", MILLI),
    MetricSeries("habanalabs_clock_soc_mhz", "sm_clock_mhz"),
    MetricSeries("habanalabs_pcie_replay_count", "pcie_replays"),
    MetricSeries("habanalabs_pending_rows_state", "row_remap_pending"),  # whether any row waits to be replaced
)


def _series_by_name() -> dict[str, tuple[MetricSeries, ...]]:
    found: dict[str, tuple[MetricSeries, ...]] = {}
    for series in (*DCGM, *AMD, *GAUDI):
        found[series.name] = (*found.get(series.name, ()), series)
    return found


SERIES: Mapping[str, tuple[MetricSeries, ...]] = _series_by_name()
EXPORTERS: Mapping[str, tuple[MetricSeries, ...]] = {
    Vendor.NVIDIA: DCGM,
    Vendor.AMD: AMD,
    Vendor.HABANA: GAUDI,
    Vendor.INTEL: (),  # no metric of Intel is read
}
_EXPORTABLE = {vendor: frozenset(series.metric for series in every) for vendor, every in EXPORTERS.items()}


def exportable(vendor: str) -> frozenset[str]:
    """Returns the metrics that exporters of this vendor can have; all if the vendor is empty."""
    return _EXPORTABLE.get(vendor, frozenset(METRICS))
