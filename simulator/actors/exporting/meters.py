"""One GPU as NVML and DCGM measure it: what it does now, and what it has counted.

What the driver counts begins at nothing when it is loaded anew, and when the GPU is reset; what sits in the board's
memory stays. The last Xid, and the windows, are the exporter's: they begin with it.
"""

from collections import deque
from dataclasses import dataclass, field
from math import exp

from simulator.actors.exporting.loads import Load, fraction
from simulator.actors.exporting.sickness import Since
from simulator.actors.skus import Sku
from simulator.faults.gpu_resets import GpuResets
from simulator.faults.strain import ClockEvent, Health, Strain

WINDOW_S = 300.0  # --xid-count-window-size, --clock-events-count-window-size
COLLECTS_EVERY_S = 30.0
WARMS_IN_S = 45.0
SETTLED_S = 20 * 86_400.0  # since when its driver has been loaded, where nobody saw it
FB_RESERVED_MIB = 560
NVLINK_MIB_PER_S = 400_000.0
PCIE_BYTES_PER_S = 9_000_000_000.0
IDLE_SM_MHZ = 345
NS = 1_000_000_000
# What the board keeps, with its driver or without.
KEPT = frozenset(
    {
        "DCGM_FI_DEV_ECC_SBE_AGG_TOTAL",
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL",
        "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
        "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
    }
)
# How long clocks were held down, by what holds them.
VIOLATIONS = {
    "DCGM_FI_DEV_POWER_VIOLATION": ClockEvent.POWER_CAP | ClockEvent.HW_POWER_BRAKE,
    "DCGM_FI_DEV_THERMAL_VIOLATION": ClockEvent.SW_THERMAL | ClockEvent.HW_THERMAL,
    "DCGM_FI_DEV_SYNC_BOOST_VIOLATION": ClockEvent.SYNC_BOOST,
    "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION": ClockEvent(0),
    "DCGM_FI_DEV_LOW_UTIL_VIOLATION": ClockEvent(0),
    "DCGM_FI_DEV_RELIABILITY_VIOLATION": ClockEvent(0),
}
COUNTED = (
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    *VIOLATIONS,
    *sorted(KEPT),
)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of a GPU that is somebody's: all of it, or an instance. `part`: of the GPU's processors, 0 to 1."""

    loads: tuple[Load, ...]
    part: float
    memory_mib: int


@dataclass(slots=True)
class Used:
    """What a share does at one moment."""

    activity: float
    tensor: float
    dram: float
    nvlink: float
    memory: float

    @classmethod
    def of(cls, share: Share, at_s: float, strain: Strain) -> "Used":
        used = cls(0.0, 0.0, 0.0, 0.0, 0.0)
        for load in share.loads:
            activity = load.activity(at_s) * strain.work_ratio
            used.activity += activity
            used.tensor += activity * load.tensor
            used.dram += activity * load.dram
            used.nvlink += activity * load.nvlink
            used.memory += load.memory
        busiest = max(1.0, used.activity)  # those that share one take turns
        used.activity, used.tensor, used.dram = used.activity / busiest, used.tensor / busiest, used.dram / busiest
        used.memory = max(min(used.memory, 0.97), strain.memory_ratio)
        return used


@dataclass(slots=True)
class Meter:
    sku: Sku
    seed: float
    at_s: float
    celsius: float = 0.0
    energy_mj: float = 0.0
    counted: dict[str, float] = field(default_factory=dict)
    loads: int = 0  # of the driver
    exporter: str = ""  # the run of it that counts in windows
    reset_s: float = 0.0  # when its volatile counters began
    xid: int = 0
    xids: deque[tuple[float, int]] = field(default_factory=deque)
    events: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=int(WINDOW_S / COLLECTS_EVERY_S)))
    strain: Strain = field(default_factory=Strain)
    activity: float = 0.0  # of the whole GPU
    used: tuple[Used, ...] = ()  # by its shares
    _started: set[Since] = field(default_factory=set)

    @classmethod
    def of(cls, sku: Sku, uuid: str, at_s: float, *, loads: int) -> "Meter":
        """Of a machine seen for the first time: it has run for weeks, and a few of its boards have aged."""
        seed = fraction(uuid)
        meter = cls(sku, seed, at_s, loads=loads, reset_s=at_s - SETTLED_S)
        meter.counted = dict.fromkeys(COUNTED, 0.0)
        meter.counted["DCGM_FI_DEV_PCIE_REPLAY_COUNTER"] = float(seed > 0.9)
        meter.counted["DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"] = float(seed < 0.02)
        meter.counted["DCGM_FI_DEV_ECC_SBE_AGG_TOTAL"] = float(int(40 * seed)) if seed < 0.1 else 0.0
        meter.energy_mj = SETTLED_S * 1000 * (sku.idle_watts + (sku.busy_watts - sku.idle_watts) * (0.4 + 0.3 * seed))
        return meter

    def follow(
        self, at_s: float, shares: tuple[Share, ...], faults: tuple[Since, ...], *, loads: int, exporter: str
    ) -> None:
        """Up to this moment, as if all had been all the time since the last one as it is now."""
        is_new = (loads, exporter) != (self.loads, self.exporter)
        if loads != self.loads:
            self._reset(at_s)
        if is_new:  # an exporter does not outlive its driver
            self.loads, self.exporter, self.xid = loads, exporter, 0
            self.xids.clear()
            self.events.clear()
        before_s, self.at_s = self.at_s, max(at_s, self.at_s)
        self._suffer(before_s, faults)
        self._run(before_s, shares)

    def _reset(self, at_s: float) -> None:
        self.reset_s, self.energy_mj = at_s, 0.0
        for counter in self.counted.keys() - KEPT:
            self.counted[counter] = 0.0

    def _suffer(self, before_s: float, faults: tuple[Since, ...]) -> None:
        self.strain = strain = Strain()
        if not faults and not self._started:
            return
        reported: list[tuple[float, int]] = []
        for fault, since_s in faults:
            is_new = (fault, since_s) not in self._started
            after_s, until_s = -1.0 if is_new else before_s - since_s, self.at_s - since_s
            if isinstance(fault, GpuResets) and fault.resets(after_s, until_s):
                self._reset(self.at_s)
            fault.bear(strain, on_s=until_s, is_reset=self.reset_s > since_s)
            for counter, gained in fault.at_start().items() if is_new else ():
                self.counted[counter] += gained
            reported += [(since_s + on_s, code) for on_s, code in fault.xids(after_s, until_s)]
        for each in sorted(reported):
            self.xid = each[1]
            self.xids.append(each)
        self._started = set(faults)

    def _run(self, before_s: float, shares: tuple[Share, ...]) -> None:
        passed_s, strain = self.at_s - before_s, self.strain
        self.used = tuple(Used.of(share, self.at_s, strain) for share in shares)
        self.activity = sum(share.part * used.activity for share, used in zip(shares, self.used, strict=True))
        self._keep_to_its_limit()
        usual = self.cooled_at + 37.0 * self.activity * strain.clock_ratio
        goal = strain.celsius or usual
        self.celsius = goal + ((self.celsius or usual) - goal) * exp(-passed_s / WARMS_IN_S)
        self.energy_mj += self.watts * passed_s * 1000
        for counter, per_s in strain.per_s.items():
            self.counted[counter] += per_s * passed_s
        for counter, mask in VIOLATIONS.items() if strain.events else ():
            self.counted[counter] += passed_s * NS if strain.events & mask else 0.0
        if not self.events or self.at_s - self.events[-1][0] >= COLLECTS_EVERY_S:
            self.events.append((self.at_s, self.reasons))

    def _keep_to_its_limit(self) -> None:
        """What it draws beyond idling goes by its clocks."""
        idle_watts, watts = self.sku.idle_watts, self.watts
        if watts > self.limit_watts:
            may = max(0.0, self.limit_watts - idle_watts) / (watts - idle_watts)
            self.strain.slow_down(may * self.strain.clock_ratio, ClockEvent.POWER_CAP)

    @property
    def cooled_at(self) -> float:
        """Celsius of a GPU that does nothing."""
        return 27.0 + 7.0 * self.seed

    @property
    def watts(self) -> float:
        sku = self.sku
        return sku.idle_watts + (sku.busy_watts - sku.idle_watts) * self.activity * self.strain.clock_ratio

    @property
    def limit_watts(self) -> float:
        most = self.strain.most_watts
        return self.sku.limit_watts if most is None else most

    @property
    def reasons(self) -> int:
        """Why its clocks are not higher."""
        if self.strain.events:
            return int(self.strain.events)
        if self.activity <= 0:
            return int(ClockEvent.GPU_IDLE)
        return int(ClockEvent.POWER_CAP) if self.activity > 0.97 else 0

    def board(self) -> dict[str, float]:
        """What is said of the GPU as a whole, by DCGM's field."""
        strain, celsius, activity, reasons = self.strain, self.celsius, self.activity, self.reasons
        return {
            **self.counted,
            "DCGM_FI_DEV_SM_CLOCK": int(self.sku.sm_mhz * strain.clock_ratio) if activity > 0 else IDLE_SM_MHZ,
            "DCGM_FI_DEV_MEM_CLOCK": self.sku.memory_mhz,
            "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": reasons,
            "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": reasons,
            "DCGM_FI_DEV_MEMORY_TEMP": celsius + 5 + 4 * activity,
            "DCGM_FI_DEV_GPU_TEMP": celsius,
            "DCGM_FI_DEV_POWER_USAGE": self.watts,
            "DCGM_FI_DEV_POWER_MGMT_LIMIT": self.limit_watts,
            "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": self.energy_mj,
            "DCGM_FI_DEV_ENC_UTIL": 0,
            "DCGM_FI_DEV_DEC_UTIL": 0,
            "DCGM_FI_DEV_VGPU_LICENSE_STATUS": 0,
            "DCGM_FI_DEV_ROW_REMAP_FAILURE": 0,
            "DCGM_FI_DEV_ROW_REMAP_PENDING": 0,
            **strain.gauges,
        }

    def part(self, share: Share, used: Used) -> dict[str, float]:
        """What is said of a GPU, or of each instance of one that is cut."""
        busy, moved = used.activity, used.activity * share.part * PCIE_BYTES_PER_S
        usable = share.memory_mib - int(FB_RESERVED_MIB * share.part)
        held = int(usable * used.memory) if share.loads else 4
        return {
            "DCGM_FI_DEV_GPU_UTIL": 100 * busy,
            "DCGM_FI_DEV_MEM_COPY_UTIL": 100 * used.dram,
            "DCGM_FI_DEV_FB_FREE": usable - held,
            "DCGM_FI_DEV_FB_USED": held,
            "DCGM_FI_DEV_FB_RESERVED": share.memory_mib - usable,
            "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL": used.nvlink * self.strain.nvlink_ratio * NVLINK_MIB_PER_S,
            "DCGM_FI_PROF_GR_ENGINE_ACTIVE": busy,
            "DCGM_FI_PROF_SM_ACTIVE": 0.92 * busy,
            "DCGM_FI_PROF_SM_OCCUPANCY": 0.4 * busy,
            "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": used.tensor * self.strain.clock_ratio,
            "DCGM_FI_PROF_DRAM_ACTIVE": used.dram,
            "DCGM_FI_PROF_PCIE_TX_BYTES": 1_200_000 + 0.6 * moved,
            "DCGM_FI_PROF_PCIE_RX_BYTES": 2_500_000 + moved,
        }

    def recent_xids(self) -> dict[int, int]:
        """Counts by number, within the window; a whole one may be a hundred thousand."""
        while self.xids and self.xids[0][0] < self.at_s - WINDOW_S:
            self.xids.popleft()
        counts: dict[int, int] = {}
        for _, code in self.xids:
            counts[code] = counts.get(code, 0) + 1
        return counts

    def recent_events(self) -> dict[ClockEvent, int]:
        counts: dict[ClockEvent, int] = {}
        for at_s, bits in self.events:
            for event in ClockEvent(bits) if at_s >= self.at_s - WINDOW_S else ():
                counts[event] = counts.get(event, 0) + 1
        return counts

    def health(self, watch: str) -> Health:
        return self.strain.health.get(watch, (0, "DCGM_FR_OK"))
