"""Past GPU telemetry of a cluster from Prometheus, as the snapshots of rounds in the past.

Values and sample times of each metric are queried as in a round, at many instants at once, in bounded pieces: weeks of
40,000 devices fit into little memory.
"""

import math
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from health.telemetry import promql
from health.telemetry.base import FORGET_AFTER_S, PART_CHARS, DeviceXid, TelemetryReading
from health.telemetry.identity import Inventory, Whereabouts, device_key, silenced, take_inventory
from health.telemetry.metrics import SERIES, MetricSeries
from health.telemetry.prometheus.answers import LabelledSample, Unusable, labels, vector
from health.telemetry.prometheus.client import Client
from health.telemetry.prometheus.ranges import Steps, series_in
from health.telemetry.prometheus.source import COVERING_SERIES, LOOK_EVERY_S, XID
from health.telemetry.snapshot import GpuDevice, GpuDeviceKey, MetricColumn, TelemetrySnapshot, in_order
from health.telemetry.snapshot_memory import put_in_words, remember

STEPS_AT_ONCE = 60  # steps whose devices are looked up together
POINTS_AT_ONCE = 400_000  # of one answer: some 12 MB
SERIES_AT_MOST = 200_000
PATH, RANGE_PATH = "/api/v1/query", "/api/v1/query_range"
RangeVector = Sequence[tuple[dict[str, str], "array[float]"]]


@dataclass(frozen=True)
class _Piece:
    """The data of some metrics at some steps."""

    values: Mapping[MetricSeries, Mapping[GpuDeviceKey, "array[float]"]]
    times: Mapping[MetricSeries, Mapping[GpuDeviceKey, "array[float]"]]
    xids: RangeVector
    parts: Mapping[MetricSeries, RangeVector]
    present: Mapping[GpuDeviceKey, "array[float]"]  # NaN: nothing that tells devices has this one

    def devices_at(self, number: int) -> set[GpuDeviceKey]:
        return {key for key, line in self.present.items() if line[number] == line[number]}


@dataclass(frozen=True)
class MissingSteps:
    """Steps without data, with the reason."""

    asked: Steps
    reason: str


@dataclass
class Past:
    """The history of one cluster. `metrics` are the wanted ones; if empty, any that identify devices."""

    client: Client
    matchers: promql.Matchers
    where: Whereabouts
    metrics: tuple[str, ...]
    is_there: Callable[[str, float], bool] = lambda _node, _at: True  # whether the cluster had this node then
    notes: dict[str, None] = field(default_factory=dict)  # contradictions, as sentences
    before: TelemetrySnapshot = field(default_factory=lambda: TelemetrySnapshot(0.0, ()))
    in_snapshot: frozenset[GpuDeviceKey] = frozenset()
    looked_at: float = -math.inf

    def readings(self, asked: Steps, *, offset_s: float = 0.0) -> Iterator[TelemetryReading | MissingSteps]:
        """Yields readings, oldest first. `offset_s` is added to its clock to get ours; `asked` uses its clock."""
        for chunk in split_instants(asked, STEPS_AT_ONCE):
            try:
                yield from self._chunk(chunk, offset_s)
            except Unusable as error:
                yield MissingSteps(chunk, str(error))

    def clock(self) -> float:
        """Returns the server's time.

        :raises Unusable: when it does not report it, or does not answer
        """
        answer = self.client.query("vector(time())")
        if len(answer) != 1 or not math.isfinite(answer[0].value.value):
            raise Unusable("The server does not report its time, so it is not a Prometheus.")
        return answer[0].value.value

    def _chunk(self, asked: Steps, offset_s: float) -> Iterator[TelemetryReading | MissingSteps]:
        wanted = [name for name, rows in SERIES.items() if any(map(self._reads, rows))]
        pattern = "|".join(dict.fromkeys((*COVERING_SERIES, *wanted)))
        within_s = asked.step_s * asked.number
        counted = self._at(promql.names_within(pattern, self.matchers, within_s=within_s), asked.last)
        there = {labels(row).get("__name__", "") for row in counted}
        if not there.intersection(wanted):
            reason = (
                "The server has no series of these metrics for that time"
                if there
                else "The server has no series of a GPU"
            )
            yield MissingSteps(asked, f"{reason}: they were not exported, not scraped, or are already deleted.")
            return
        covering = [name for name in COVERING_SERIES if name in there] or sorted(there)
        covering += self._extra_names(there.difference(covering), covering, asked)
        names = sorted(there.intersection(wanted)) if self.metrics else covering
        found = take_inventory(self._devices(covering, asked), self.where)
        self.notes.update(dict.fromkeys(found.notes))
        if not found.devices:
            yield MissingSteps(asked, "The series name neither a node of this cluster nor an existing exporter pod.")
            return
        for steps in split_instants(asked, max(1, POINTS_AT_ONCE // len(found.devices))):
            try:
                piece = self._piece(
                    [row for name in names for row in SERIES[name] if self._reads(row)], covering, steps
                )
            except Unusable as error:
                yield MissingSteps(steps, str(error))
                continue
            for number, at in enumerate(steps.times):
                self._update_inventory(found, piece.devices_at(number), at + offset_s)
                yield self._reading(piece, number, at + offset_s, offset_s)

    def _reads(self, row: MetricSeries) -> bool:
        return not self.metrics or row.metric in self.metrics

    def _extra_names(self, names: Collection[str], covering: Sequence[str], asked: Steps) -> list[str]:
        """Returns the names with devices that the usual ones lack, as rounds find them."""
        if not names:
            return []
        which = promql.extra_names_query(sorted(names), covering, self.matchers, within_s=asked.step_s * asked.number)
        return sorted(labels(row).get("__name__", "") for row in self._at(which, asked.last))

    def _devices(self, covering: Sequence[str], asked: Steps) -> Iterator[tuple[GpuDeviceKey, Mapping[str, str]]]:
        """Yields devices and labels. Pods are left out, since the jobs of that time are queried separately."""
        within_s = asked.step_s * asked.number
        rows = self._at(promql.devices_within(covering, self.matchers, within_s=within_s), asked.last)
        pods: dict[GpuDeviceKey, list[str]] = {}
        if self.where.exporters:
            stems = {name.rpartition("-")[0] for name in self.where.exporters}
            which = promql.exporters_within(covering, stems, self.matchers, within_s=within_s)
            for said in map(labels, self._at(which, asked.last)):
                if said.get("pod") in self.where.exporters:
                    pods.setdefault(device_key(said), []).append(said["pod"])
        for said in map(labels, rows):
            key = device_key(said)
            for pod in pods.get(key, ("",)):
                yield key, said | {"pod": pod}

    def _update_inventory(self, known: Inventory, said: set[GpuDeviceKey], at: float) -> None:
        """Updates the devices of the snapshot as a round does: every few minutes, and at once for a new one."""
        there, strange = dict[str, bool](), said - self.in_snapshot

        def is_there(device: GpuDevice) -> bool:
            name = device.node_name
            if name not in there:
                there[name] = self.is_there(name, at)
            return there[name]

        is_new = any(device.key in strange and is_there(device) for device in known.devices) if strange else False
        if not is_new and at - self.looked_at < LOOK_EVERY_S:
            return
        oldest = at - FORGET_AFTER_S
        now = [device for device in known.devices if device.key in said and is_there(device)]
        lost = silenced(self.before, now, self.where, since=oldest, contested=known.contested)
        lost = [device for device in lost if is_there(device)]
        self.before = self.before.carried(in_order([*now, *lost]), forget_before=oldest)
        self.in_snapshot, self.looked_at = frozenset(device.key for device in self.before.devices), at

    def _reading(self, piece: _Piece, number: int, at: float, offset_s: float) -> TelemetryReading:
        before = self.before
        snapshot = before.copied()
        snapshot.taken_at = at
        index = snapshot.index()
        for row, lines in piece.values.items():
            times = piece.times[row]
            column = snapshot.columns.setdefault(row.metric, MetricColumn.empty(len(snapshot.devices)))
            least, most = row.bounds
            for key, line in lines.items():
                place, taken = index.get(key, -1), times.get(key)
                if place < 0 or taken is None:
                    continue
                value, sampled = line[number], taken[number] + offset_s
                if least <= value <= most and sampled == sampled and not sampled <= column.times[place]:
                    column.values[place], column.times[place] = value * row.factor, sampled
        remember(before, snapshot)
        xids = _xids(piece, number)
        put_in_words(snapshot, xids)
        self.before = snapshot
        exported = frozenset(row.metric for row in piece.values)
        return TelemetryReading(snapshot, exported, xids, parts=_parts(piece, number))

    def _piece(self, series: Sequence[MetricSeries], covering: Sequence[str], steps: Steps) -> _Piece:
        present = _lines_by_device(self._range(promql.present(covering, self.matchers), steps))
        is_doubled = bool(self._range(promql.doubled(covering, self.matchers), steps))
        ask = promql.newest_values if is_doubled else promql.values
        values, times, parts = {}, {}, {}
        for row in series:
            matchers = self.matchers.and_one_of(row.label, row.only)
            values[row] = _lines_by_device(self._range(ask(row.name, matchers), steps))
            times[row] = _lines_by_device(self._range(promql.times(row.name, matchers), steps))
            if row.label and row.has_parts:
                parts[row] = self._range(promql.non_zero_by_label(row.name, row.label, matchers), steps)
        xids = (
            self._range(promql.last_xids(XID, self.matchers), steps) if any(row.name == XID for row in series) else ()
        )
        return _Piece(values, times, xids, parts, present)

    def _at(self, expression: str, at: float) -> list[LabelledSample]:
        return vector(self.client.ask(PATH, {"query": expression, "time": f"{at:.3f}"}))

    def _range(self, expression: str, steps: Steps) -> RangeVector:
        form = {
            "query": expression, "start": f"{steps.first:.0f}", "end": f"{steps.last:.0f}",
            "step": f"{steps.step_s:.0f}",
        }  # fmt: skip
        return list(series_in(self.client.ask(RANGE_PATH, form), steps, at_most=SERIES_AT_MOST))


def split_instants(asked: Steps, most: int) -> Iterator[Steps]:
    """Yields the same instants in pieces of at most `most`."""
    for start in range(0, asked.number, most):
        yield Steps(asked.first + start * asked.step_s, asked.step_s, min(most, asked.number - start))


def _lines_by_device(lines: RangeVector) -> Mapping[GpuDeviceKey, "array[float]"]:
    """Returns one line per device, also if its series was renamed meanwhile."""
    found: dict[GpuDeviceKey, array[float]] = {}
    for said, line in lines:
        before = found.setdefault(device_key(said), line)
        if before is not line:
            for place, value in enumerate(line):
                if before[place] != before[place]:
                    before[place] = value
    return found


def _xids(piece: _Piece, number: int) -> Mapping[GpuDeviceKey, DeviceXid]:
    told = {}
    for said, line in piece.xids:
        if 1 <= line[number] <= SERIES[XID][0].bounds[1]:
            told[device_key(said)] = DeviceXid(int(line[number]), said.get("err_msg", "")[:300])
    return told


def _parts(piece: _Piece, number: int) -> dict[GpuDeviceKey, dict[str, dict[str, float]]]:
    found: dict[GpuDeviceKey, dict[str, dict[str, float]]] = {}
    for row, lines in piece.parts.items():
        for said, line in lines:
            part, value = said.get(row.label, "")[:PART_CHARS], line[number]
            if part and 0 < value <= row.bounds[1]:
                found.setdefault(device_key(said), {}).setdefault(row.metric, {})[part] = value
    return found
