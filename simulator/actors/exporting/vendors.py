"""Exporters of other vendors' accelerators: AMD's device-metrics-exporter and Intel's for Gaudi, each with its text.

ROCm/device-metrics-exporter, docs/configuration/metricslist.md: the fields of an MI3xx, in lower case, and its labels.
Intel Gaudi's metric exporter (vault.habana.ai/gaudi-metric-exporter): series and labels of its Go source. Both are
Prometheus' client for Go: labels are sorted, those without a value are empty, and numbers are Go's.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256

from simulator.actors.exporting.loads import Load, fraction
from simulator.actors.exporting.misbehaving import answered, distorted
from simulator.actors.exporting.sickness import Sickness, Since
from simulator.actors.objects import Obj, is_finished, is_true, labels, name, namespace, node_of, status, uid
from simulator.actors.world import World
from simulator.faults.board import Board
from simulator.faults.ecc_errors import CORRECTED, UNCORRECTED
from simulator.faults.strain import Strain
from simulator.kinds import NODE, POD
from simulator.pod_ends import Served
from simulator.quantities import requests

AMD_PORT, GAUDI_PORT = 5000, 41611
EPOCH_S = 1_700_000_000  # since when these have drawn power
REPLAYS, PENDING = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "DCGM_FI_DEV_ROW_REMAP_PENDING"
Series = Iterator[tuple[str, dict[str, str], float]]


@dataclass(frozen=True, slots=True)
class Suffered:
    """What faults do to one of them. They speak of counters and gauges by their DCGM fields."""

    strain: Strain = field(default_factory=Strain)
    counted: Counter[str] = field(default_factory=Counter)

    @classmethod
    def by(cls, faults: Iterable[Since], index: int, at_s: float) -> "Suffered":
        its = cls()
        for fault, since_s in faults:
            if fault.has(index):
                alone, on_s = Strain(), at_s - since_s
                fault.bear(its.strain, on_s=on_s, is_reset=False)
                fault.bear(alone, on_s=on_s, is_reset=False)
                its.counted.update({counter: int(per_s * on_s) for counter, per_s in alone.per_s.items()})
                its.counted.update(fault.at_start())
        return its


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One of a node, and what it does now."""

    node: str
    index: int
    holder: Obj | None
    at_s: float
    idle_watts: float
    busy_watts: float
    memory_bytes: int
    suffered: Suffered = field(default_factory=Suffered)

    @property
    def load(self) -> Load | None:
        return Load.of(self.holder, 8) if self.holder and is_true(self.holder, "Ready") else None

    @property
    def activity(self) -> float:
        return self.load.activity(self.at_s) * self.suffered.strain.work_ratio if self.load else 0.0

    @property
    def watts(self) -> float:
        return self.idle_watts + (self.busy_watts - self.idle_watts) * self.activity

    @property
    def joules(self) -> float:
        return (self.at_s - EPOCH_S) * (self.idle_watts + self.busy_watts) / 2

    @property
    def celsius(self) -> float:
        cooled = 32 + 6 * fraction(self.serial) + 34 * self.activity
        return round(max(cooled, self.suffered.strain.celsius or 0.0))

    @property
    def clock_ratio(self) -> float:
        return self.suffered.strain.clock_ratio

    @property
    def used_bytes(self) -> int:
        by_load = int(self.memory_bytes * self.load.memory) if self.load else 290 << 20
        return max(by_load, int(self.memory_bytes * self.suffered.strain.memory_ratio))

    def counted(self, counter: str) -> int:
        return self.suffered.counted[counter]

    @property
    def serial(self) -> str:
        return sha256(f"{self.node}/{self.index}".encode()).hexdigest()[:12]

    @property
    def held_by(self) -> tuple[str, str, str]:
        """Namespace, pod and container."""
        if self.holder is None:
            return "", "", ""
        return namespace(self.holder), name(self.holder), self.holder["spec"]["containers"][0]["name"]


def _amd(each: Accelerator) -> Series:
    where, pod, container = each.held_by
    tags = {
        "card_model": "0x74a1",
        "container": container,
        "driver_version": "6.12.12",
        "gpu_compute_partition_type": "spx",
        "gpu_id": str(each.index),
        "gpu_partition_id": "0",
        "hostname": each.node,
        "namespace": where,
        "pod": pod,
        "serial_number": each.serial,
    }
    mib = each.memory_bytes >> 20
    used = each.used_bytes >> 20
    system = {"clock_index": "0", "clock_type": "GPU_CLOCK_TYPE_SYSTEM"}
    memory = {"clock_index": "8", "clock_type": "GPU_CLOCK_TYPE_MEMORY"}
    lost = each.counted(UNCORRECTED[0])
    yield "gpu_clock", tags | system, round(2100 * each.clock_ratio) if each.activity else 132
    yield "gpu_clock", tags | memory, 1300 if each.activity else 900
    yield "gpu_ecc_correct_total", tags, each.counted(CORRECTED[0])
    yield "gpu_ecc_uncorrect_total", tags, lost
    yield "gpu_energy_consumed", tags, int(each.joules * 1_000_000)
    yield "gpu_free_vram", tags, mib - used
    yield "gpu_gfx_activity", tags, round(100 * each.activity)
    yield "gpu_health", tags, 0 if lost else 1
    yield "gpu_junction_temperature", tags, each.celsius
    yield "gpu_memory_temperature", tags, each.celsius - 6
    yield "gpu_package_power", tags, round(each.watts)
    yield "gpu_power_usage", tags, round(each.watts)
    yield "gpu_total_vram", tags, mib
    yield "gpu_umc_activity", tags, round(60 * each.activity)
    yield "gpu_used_vram", tags, used
    yield "pcie_replay_count", tags, each.counted(REPLAYS)


def _gaudi(each: Accelerator) -> Series:
    where, pod, _ = each.held_by
    tags = {
        "Serial": each.serial,
        "UUID": f"01P0-HL3080A0-15-{each.serial}",
        "device": each.serial,
        "driver": "1.22.0-740",
        "fit": "hl-gaudi3-1.22.0-fw-60.0.1-sec-10",
        "id": str(each.index),
        "pod_name": pod,
        "pod_namespace": where,
        "spi": "Preboot version hl-gaudi3-1.22.0-fw-60.0.1-sec-10",
    }
    yield "habanalabs_clock_soc_max_mhz", tags, 1600
    yield "habanalabs_clock_soc_mhz", tags, round(1600 * each.clock_ratio) if each.activity else 800
    yield "habanalabs_energy", tags, int(each.joules)
    yield "habanalabs_memory_free_bytes", tags, each.memory_bytes - each.used_bytes
    yield "habanalabs_memory_total_bytes", tags, each.memory_bytes
    yield "habanalabs_memory_used_bytes", tags, each.used_bytes
    yield "habanalabs_pcie_replay_count", tags, each.counted(REPLAYS)
    yield "habanalabs_pending_rows_state", tags, each.suffered.strain.gauges.get(PENDING, 0)
    yield "habanalabs_pending_rows_with_double_bit_ecc_errors", tags, 0
    yield "habanalabs_pending_rows_with_single_bit_ecc_errors", tags, 0
    yield "habanalabs_power_default_limit_mW", tags, 900_000
    yield "habanalabs_power_mW", tags, int(each.watts * 1000)
    yield "habanalabs_temperature_onboard", tags, each.celsius - 4
    yield "habanalabs_temperature_onchip", tags, each.celsius
    yield "habanalabs_utilization", tags, round(100 * each.activity)


@dataclass(frozen=True, slots=True)
class Vendor:
    resource: str
    series: Callable[[Accelerator], Series]
    idle_watts: float
    busy_watts: float
    memory_bytes: int


VENDORS = {
    AMD_PORT: Vendor("amd.com/gpu", _amd, 140, 720, 196_592 << 20),
    GAUDI_PORT: Vendor("habana.ai/gaudi", _gaudi, 210, 830, 128 << 30),
}


class VendorExporters:
    """Which pod holds which device is kept, as the kubelet's device manager does."""

    def __init__(self, world: World, faults: Board) -> None:
        self._world = world
        self._faults = faults
        self._sickness = Sickness(faults, lambda: world.loop.clock.now().timestamp(), lambda _: None)
        self._held: dict[str, dict[str, tuple[int, ...]]] = {}
        self._asked = 0

    def serve_at(self, port: int) -> Callable[[Obj, str], Served | None]:
        return lambda pod, path: self.serve(pod, path, VENDORS[port])

    def serve(self, pod: Obj, path: str, vendor: Vendor) -> Served | None:
        node = self._world[NODE].get(node_of(pod))
        count = int((status(node).get("capacity") or {}).get(vendor.resource, 0)) if node else 0
        if "metrics-exporter" not in labels(pod).get("app", "") or not count or path.strip("/") != "metrics":
            return Served(b"404 page not found\n", status=404)
        at_s = self._world.loop.clock.now().timestamp()
        holders = self._holders(node_of(pod), vendor.resource, count)
        faults = self._sickness.on(node_of(pod))
        every = [
            Accelerator(
                *(node_of(pod), index, holders.get(index), at_s),
                *(vendor.idle_watts, vendor.busy_watts, vendor.memory_bytes),
                Suffered.by(faults, index, at_s),
            )
            for index in range(count)
        ]
        there = (each for each in every if not each.suffered.strain.is_gone)
        text = _text(series for each in there for series in vendor.series(each))
        self._asked += 1
        text = distorted(self._faults, node_of(pod), text, now_s=at_s, asked=self._asked)
        return answered(self._faults, node_of(pod), text)

    def _holders(self, node_name: str, resource: str, count: int) -> dict[int, Obj]:
        pods = {uid(pod): pod for pod in self._world[POD].by("node", node_name) if requests(pod)[resource]}
        pods = {pod_uid: pod for pod_uid, pod in pods.items() if not is_finished(pod)}
        held = {pod_uid: given for pod_uid, given in self._held.get(node_name, {}).items() if pod_uid in pods}
        for pod_uid in sorted(pods.keys() - held.keys()):
            taken = {index for given in held.values() for index in given}
            free = [index for index in range(count) if index not in taken]
            held[pod_uid] = tuple(free[: requests(pods[pod_uid])[resource]])
        self._held[node_name] = held
        return {index: pods[pod_uid] for pod_uid, given in held.items() for index in given}


def _text(series: Series) -> str:
    families: dict[str, list[str]] = {}
    for called, tags, value in series:
        written = ",".join(f'{key}="{tags[key]}"' for key in sorted(tags))
        families.setdefault(called, []).append(f"{called}{{{written}}} {go_number(value)}\n")
    opened = ((called, f"# HELP {called} \n# TYPE {called} gauge\n") for called in sorted(families))
    return "".join(opening + "".join(families[called]) for called, opening in opened)


def go_number(value: float) -> str:
    """As strconv.FormatFloat(value, 'g', -1, 64) writes it: from a million on with an exponent."""
    number = Decimal(repr(float(value))).normalize()
    if not value or -5 < number.adjusted() < 6:
        return f"{number:f}"
    mantissa, _, power = f"{number:e}".partition("e")
    return f"{mantissa}e{power[0]}{int(power[1:]):02d}"
