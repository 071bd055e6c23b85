"""One round at a Prometheus: the names of series, their devices, and the values and times of each metric."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from health.telemetry import promql
from health.telemetry.base import (
    AHEAD_S,
    FORGET_AFTER_S,
    PART_CHARS,
    SERIES_AT_MOST,
    SKEW_S,
    DeviceXid,
    Exploding,
    Parts,
    TelemetryReading,
    UnplacedXids,
)
from health.telemetry.identity import (
    NAMED_AT_MOST,
    Inventory,
    Whereabouts,
    device_key,
    node_of,
    silenced,
    take_inventory,
)
from health.telemetry.metrics import SERIES, MetricSeries
from health.telemetry.prometheus.answers import FillCounts, LabelledSample, Placing, Unusable, fill, labels, vector
from health.telemetry.prometheus.client import Client
from health.telemetry.snapshot import GpuDevice, GpuDeviceKey, MetricColumn, TelemetrySnapshot, in_order
from health.telemetry.snapshot_memory import put_in_words, remember
from wording.numbers import count

PATH = "/api/v1/query"
ROUND_S = 60.0  # after this time the next round asks again
LOOK_EVERY_S = 300.0  # for new devices, and for newly exported series
EXPORTERS_NAMES = "DCGM_(FI|EXP)_.+|dcgm_.+|(amd_)?(gpu|pcie)_.+|habanalabs_.+"
# Metric prefixes of exporters that are not read: utkuozdemir/nvidia_gpu_exporter nvidia_smi_*, ROCm/omnistat rocm_*,
# OpenShift's names for all accelerator_*, lablup/all-smi all_smi_*.
UNREAD_NAMES = "(nvidia|rocm|accelerator|all_smi)_.+"
XID = "DCGM_FI_DEV_XID_ERRORS"
EXPLODING_AT_MOST = 200  # exporters that are checked
PARTS_AT_MOST = 20_000  # of one metric: where more devices have any it is no device
PROFILED = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
# One of these has every device that any has: of an exporter that lacks some of its series, too.
COVERING_SERIES = (
    "DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_POWER_USAGE",
    "dcgm_gpu_temp", "dcgm_fb_used", "dcgm_sm_clock", "dcgm_power_usage",
    PROFILED, "gpu_power_usage", "amd_gpu_power_usage", "gpu_used_vram", "amd_gpu_used_vram",
    "habanalabs_temperature_onchip", "habanalabs_memory_used_bytes",
)  # fmt: skip


@dataclass(frozen=True)
class Known:
    """Names and devices from the last search, which not every round repeats."""

    names: frozenset[str]  # of series that are exported
    devices: tuple[GpuDevice, ...]
    looked_at: float
    notes: tuple[str, ...] = ()
    exploding: tuple[Exploding, ...] = ()
    left_out: int = 0  # devices that series name and that are none of this cluster's
    contested: frozenset[GpuDeviceKey] = frozenset()  # devices that several of its nodes claim
    beside: frozenset[str] = frozenset()  # names of series that had devices which none of `TELLING` has
    keys: dict[bytes, GpuDeviceKey] = field(default_factory=dict)  # of devices, by their labels as they are written


@dataclass
class Prometheus:
    """A source for one cluster's devices. Keep `known` for the next round.

    A round queries one instant, so series from one scrape have identical times.
    """

    client: Client
    matchers: promql.Matchers
    where: Whereabouts
    clock: Callable[[], float] = time.time
    known: Known | None = None
    _until: float = math.inf  # of `time.monotonic`
    _instant: str = ""  # that is asked of, by the Prometheus' clock; blank: now
    _times: tuple[bytes, list[LabelledSample]] | None = None  # the last that were answered

    def take(self, before: TelemetrySnapshot | None, *, now: float) -> TelemetryReading:
        """Returns the source's answer.

        :raises Unusable: with the reason and the action
        """
        self._until, self._instant = time.monotonic() + ROUND_S, ""
        offset_s, notes = self._offset()
        known = self._find_devices(now=now)
        earlier, oldest = before or TelemetrySnapshot(now, ()), now - FORGET_AFTER_S
        lost = silenced(earlier, known.devices, self.where, since=oldest, contested=known.contested)
        devices = in_order([*known.devices, *lost]) if lost else known.devices
        carried = earlier.carried(devices, forget_before=oldest)
        snapshot = carried.copied()
        snapshot.taken_at = now
        placing, are_doubled = Placing(snapshot.index(), known.keys), self._are_doubled(known.names)
        series, odd, stranger = [row for name in sorted(known.names) for row in SERIES[name]], list[str](), ""
        for row in series:
            unknown = placing.unknown
            filled = self._fill(snapshot, row, placing, offset_s=offset_s, are_doubled=are_doubled)
            stranger = row.name if placing.unknown > unknown else stranger
            odd += _odd_in(row, filled)
        if placing.unknown > known.left_out:
            # New devices appeared: the next round identifies them.
            beside = known.beside | {stranger}
            self.known = replace(known, looked_at=-math.inf, left_out=placing.unknown, beside=beside)
        anew = tuple(snapshot.devices[place] for place in remember(carried, snapshot))
        xids = self._xids() if XID in known.names else {}
        unplaced = self._unplaced_xids() if any(not uuid for uuid, _ in xids) else {}
        put_in_words(snapshot, xids)
        parts = self._parts([row for row in series if row.label and row.has_parts])
        exported = frozenset(row.metric for row in series)
        notes = (*notes, *known.notes, *_inconsistency_notes(odd))
        skew_s = float(round(offset_s)) if abs(offset_s) > SKEW_S else 0.0
        came = snapshot.new_boards_since(earlier)
        return TelemetryReading(snapshot, exported, xids, notes, parts, known.exploding, anew, came, unplaced, skew_s)

    def _query(self, expression: str) -> list[LabelledSample]:
        """Returns the series of a query.

        :raises Unusable: also when the round's time is used up, so that it ends within its lease
        """
        return vector(self._ask(expression))

    def _ask(self, expression: str) -> bytes:
        if time.monotonic() > self._until:
            raise Unusable(f"The server is too slow: some series were missing after {ROUND_S:.0f} s.")
        at = {"time": self._instant} if self._instant else {}
        return self.client.ask(PATH, {"query": expression, **at})

    def _offset(self) -> tuple[float, tuple[str, ...]]:
        """Returns the seconds to add to its clock to get ours, with notes."""
        asked_at = self.clock()
        answer = self._query("vector(time())")
        if len(answer) != 1 or not math.isfinite(answer[0].value.value):
            raise Unusable("The server does not report its time, so it is not a Prometheus.")
        offset_s = (asked_at + self.clock()) / 2 - answer[0].value.value
        self._instant = f"{answer[0].value.value:.3f}"
        if abs(offset_s) <= SKEW_S:
            return offset_s, ()
        way = "behind" if offset_s > 0 else "ahead of"
        return offset_s, (f"The server's clock is {abs(offset_s):.0f} s {way} ours. Times are shown by our clock.",)

    def _find_devices(self, *, now: float) -> Known:
        known = self.known
        if known is None or not known.names or now - known.looked_at >= LOOK_EVERY_S or now < known.looked_at:
            found = self._looked(now=now)
            if known is not None and found.devices == known.devices:  # nobody knows them: no reason to look each time
                found = replace(found, left_out=max(found.left_out, known.left_out))
            known = self.known = found
        return known

    def _looked(self, *, now: float) -> Known:
        # By name: whatever else it has, and how much, costs nothing.
        names = self._names("|".join(sorted(SERIES))).intersection(SERIES)
        if not names:
            raise Unusable(self._why_none())
        beside = self.known.beside & names if self.known is not None else frozenset[str]()
        found = self._inventory(dict.fromkeys([*_covering_names(names), *sorted(beside)]))
        exploding, odd = self._exploding(names)
        return Known(
            names, found.devices, now, (*found.notes, *odd), exploding, found.left_out, found.contested, beside
        )  # fmt: skip

    def _names(self, pattern: str) -> frozenset[str]:
        """Returns the names of series.

        :raises Unusable: when it reports a number of series without names
        """
        counted = self._query(promql.exported_names(pattern, self.matchers))
        names = frozenset(filter(None, (labels(row).get("__name__", "") for row in counted)))
        if counted and not names:
            raise Unusable(
                "The series have no names (label __name__). The server is not a Prometheus, or a proxy removes "
                "the names."
            )
        return names

    def _why_none(self) -> str:
        """Returns why no exported series is known, with the exporter's name if it is recognised."""
        beside = f" with {self.matchers.text}" if self.matchers.text else ""
        if others := sorted(self._names(EXPORTERS_NAMES)) or sorted(self._names(UNREAD_NAMES)):
            return (
                f"The server has only series of an unsupported GPU exporter{beside}, such as {others[0][:100]}. "
                "Supported: the exporters of NVIDIA (DCGM), AMD and Gaudi with their original names."
            )
        return (
            f"The server has no series of a GPU exporter{beside}. Check that it scrapes the DCGM exporter, and "
            "that the label matchers select this cluster."
        )

    def _exploding(self, names: frozenset[str]) -> tuple[tuple[Exploding, ...], tuple[str, ...]]:
        """Returns exploding exporters and notes. One query, and another about exporters with very many samples.

        A Prometheus with exploding series answers this one last. GPUs are observed meanwhile.
        """
        try:
            given = self._query(promql.samples(_covering_names(names), self.matchers))
            many = [labels(row).get("instance", "") for row in given if row.value.value > SERIES_AT_MOST]
            if given and not many:
                return (), ()
            those = many[:EXPLODING_AT_MOST] if all(map(promql.is_plain, many)) else []
            ask = promql.exploding(EXPORTERS_NAMES, self.matchers, most=SERIES_AT_MOST, instances=those)
            rows = self._query(ask)
        except Unusable as error:
            before = self.known.exploding if self.known is not None else ()
            return before, (f"It is unknown whether an exporter has too many series: {error}",)
        found = []
        for row in rows[:EXPLODING_AT_MOST]:
            said, number = labels(row), row.value.value
            name, instance = said.get("__name__", "")[:100], said.get("instance", "")[:100]
            if math.isfinite(number):
                found.append(Exploding(name, instance, int(number)))
        return tuple(sorted(found, key=lambda one: (-one.series, one.instance, one.name))), ()

    def _inventory(self, names: Iterable[str]) -> Inventory:
        rows = self._query(promql.devices(names, self.matchers))
        told = (labels(row) for row in rows)
        return take_inventory(((device_key(each), each) for each in told), self.where)

    def _are_doubled(self, names: frozenset[str]) -> bool:
        """Returns whether devices have duplicate series, over every name that identifies devices."""
        return bool(self._query(promql.doubled(_covering_names(names), self.matchers)))

    def _fill(
        self, snapshot: TelemetrySnapshot, row: MetricSeries, placing: Placing, *, offset_s: float, are_doubled: bool
    ) -> FillCounts:
        ask = promql.newest_values if are_doubled else promql.values
        matchers = self.matchers.and_one_of(row.label, row.only)
        # Timestamps first: a value is never older than its timestamp here.
        times = self._times_of(row.name, matchers)
        values = self._query(ask(row.name, matchers))
        column = snapshot.columns.setdefault(row.metric, MetricColumn.empty(len(snapshot.devices)))
        return fill(
            column, values, times, placing, factor=row.factor, bounds=row.bounds, offset_s=offset_s,
            latest=snapshot.taken_at + AHEAD_S,
        )  # fmt: skip

    def _times_of(self, name: str, matchers: promql.Matchers) -> list[LabelledSample]:
        """Returns the sample times, decoded once while they stay the same for the next name, as usual."""
        body = self._ask(promql.times(name, matchers))
        if self._times is None or body != self._times[0]:
            self._times = body, vector(body)
        return self._times[1]

    def _xids(self) -> Mapping[tuple[str, str], DeviceXid]:
        told = {}
        for row in self._query(promql.last_xids(XID, self.matchers)):
            said, (least, most) = labels(row), SERIES[XID][0].bounds
            if least <= row.value.value <= most:
                told[device_key(said)] = DeviceXid(int(row.value.value), said.get("err_msg", "")[:300])
        return told

    def _unplaced_xids(self) -> UnplacedXids:
        """Returns Xids of series without a GPU by the node in their labels; empty if they name none."""
        found: dict[str, list[DeviceXid]] = {}
        for row in self._query(promql.unplaced_xids(XID, self.matchers)):
            said, (least, most) = labels(row), SERIES[XID][0].bounds
            if least <= row.value.value <= most:
                told = DeviceXid(int(row.value.value), said.get("err_msg", "")[:300])
                found.setdefault(node_of(said, self.where), []).append(told)
        return found

    def _parts(self, series: Iterable[MetricSeries]) -> Parts:
        """Returns the parts of metrics for the few devices that have any, with a query for each metric."""
        found: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
        for row in series:
            matchers = self.matchers.and_one_of(row.label, row.only)
            for one in self._query(promql.non_zero_by_label(row.name, row.label, matchers))[:PARTS_AT_MOST]:
                said, (least, most) = labels(one), row.bounds
                part, value = said.get(row.label, "")[:PART_CHARS], one.value.value
                if part and least <= value <= most:
                    found.setdefault(device_key(said), {}).setdefault(row.metric, {})[part] = value
        return found


def _covering_names(names: frozenset[str]) -> list[str]:
    """Returns the names whose series cover every GPU; all names if only profiling ones are left."""
    usual = [name for name in COVERING_SERIES if name in names]
    return usual if any(name != PROFILED for name in usual) else sorted(names)


def _odd_in(row: MetricSeries, filled: FillCounts) -> Iterator[str]:
    if filled.impossible:
        yield f"{count(filled.impossible, 'impossible value')} of {row.name}"
    if filled.ahead:
        yield f"{count(filled.ahead, 'value')} of {row.name} with a future time"


def _inconsistency_notes(odd: Sequence[str]) -> tuple[str, ...]:
    rest = len(odd) - NAMED_AT_MOST
    more = f" and similar values of {rest} more series" if rest > 0 else ""
    return (f"Left out: {', '.join(odd[:NAMED_AT_MOST])}{more}.",) if odd else ()
