"""Replays a GPU rule from a cluster's Prometheus, with the same snapshots and the same evaluation."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import chain
from typing import Any

from fleet.models import Cluster
from health.backtest.allocations import PastAllocations, past_allocations
from health.backtest.replay import Replay, WouldBe
from health.backtest.timelines import NodePast, pasts
from health.evaluation.gpu_evaluation import GpuEvaluator
from health.evaluation.limits_in_force import LimitsInForce
from health.evaluation.node_context import DAY, GpuReset, XidsFound, classes_of, resets_of
from health.models import TelemetrySource
from health.rules.gpus.base import GpuRule
from health.rules.gpus.nvlink_quiet import BUSY, NvlinkQuiet
from health.rules.gpus.resets import WITHIN, Resets
from health.rules.gpus.xid import LastXid
from health.sources.snapshots import StoredSnapshot
from health.sources.source_round import round_of
from health.sources.xid_recall import add_counted_xids
from health.telemetry.base import SKEW_S, STALE_AFTER_S, TelemetryReading
from health.telemetry.prometheus.client import Bounds, Client
from health.telemetry.prometheus.past import MissingSteps, Past
from health.telemetry.prometheus.ranges import Steps
from health.telemetry.snapshot import GpuDevice, TelemetrySnapshot
from wording.instants import to_the_minute
from wording.lists import names

BOUNDS = Bounds(connect_s=3.0, read_s=30.0, answer_s=60.0, answer_bytes=64 << 20)
READS_HOLDERS = frozenset({NvlinkQuiet.key})
READS_BESIDE = {NvlinkQuiet.key: BUSY, LastXid.key: ("energy_joules",)}  # read, but not among its own metrics
WARM_UP = timedelta(hours=1)  # counters need an hour of samples


@dataclass
class TelemetryCoverage:
    """The share of time with GPU telemetry. Rules do not report silence, so no finding is no proof of health."""

    first_at: datetime | None = None
    reporting: int = 0  # GPUs, added up over the looks since then
    known: int = 0
    now: int = 0  # GPUs that are known at the last look
    gaps: list[tuple[datetime, datetime, str]] = field(default_factory=list)  # from, to, why

    def count(self, at: datetime, reporting: int, known: int, step: timedelta, reason: str) -> None:
        """Counts one step. `reason` is why no GPU had telemetry."""
        if reporting:
            self.first_at = self.first_at or at
        else:
            self.gap(at, at + step, reason)
        if self.first_at is not None:
            self.reporting, self.known, self.now = self.reporting + reporting, self.known + known, known

    def miss(self, begin: datetime, end: datetime, looks: int, reason: str) -> None:
        """Counts steps without data."""
        self.gap(begin, end, reason)
        self.known += self.now * looks

    def gap(self, begin: datetime, end: datetime, reason: str) -> None:
        """Adds a gap. It extends the previous one if that ends where it begins."""
        if self.gaps and self.gaps[-1][1] >= begin:
            begin, _, before = self.gaps.pop()
            reason = before if reason in before else f"{before} {reason}"
        self.gaps.append((begin, end, reason))

    @property
    def ratio(self) -> float | None:
        """Returns the share; None if no GPU was ever known."""
        return self.reporting / self.known if self.known else None


@dataclass(frozen=True)
class _Then(Mapping[str, Mapping[str, Any]]):
    """Nodes as they were at a moment."""

    pasts: Mapping[str, Sequence[NodePast]]
    at: datetime

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        node = next((one for one in self.pasts[name] if one.is_there(self.at)), None)
        if node is None:
            raise KeyError(name)
        states = {column: node.was(column, self.at) for column in ("upgrade_state", "mig_config_state")}
        # How many GPUs it had then is not kept: none is taken for replaced.
        who = {"id": node.node_id, "uid": node.uid, "name": name, "gpu_vendor": node.vendor}
        return {**who, "gpu_expected": None, **states}

    def __iter__(self) -> Iterator[str]:
        return iter(self.pasts)

    def __len__(self) -> int:
        return len(self.pasts)


@dataclass(frozen=True)
class _AroundThen:
    """Stored facts about nodes. The pools of a node are the current ones."""

    nodes: _Then
    classes: Mapping[int, frozenset[str]]
    allocations: PastAllocations
    devices: Sequence[GpuDevice]
    reset: Sequence[GpuReset] = ()
    xids_found: XidsFound = field(default_factory=XidsFound)

    @cached_property
    def of_one_job(self) -> Collection[str]:
        boards = Counter(device.node_name for device in self.devices if not device.gi_id)
        there = {name: node["uid"] for name in boards if (node := self.nodes.get(name))}
        return {name for name, uid in there.items() if self.allocations.most(uid, self.nodes.at) >= boards[name]}

    @cached_property
    def resets(self) -> Counter[tuple[str, int]]:
        at = self.nodes.at
        return Counter((one.node_uid, one.gpu) for one in self.reset if at - WITHIN < one.at <= at)

    @cached_property
    def driver_changed(self) -> Mapping[str, datetime]:
        at = self.nodes.at
        found = {}
        for node in chain.from_iterable(self.nodes.pasts.values()):
            since, _ = node.turn("driver_version", at)
            if at - DAY <= since:
                found[node.uid] = since
        return found


@dataclass
class GpuReplay:
    """The replay of one rule in one cluster. After `run` it holds findings, telemetry coverage and oddities."""

    cluster: Cluster
    source: TelemetrySource
    rule: GpuRule
    limits: LimitsInForce
    clock: Callable[[], datetime]
    replay: Replay = field(default_factory=Replay)
    reporting: TelemetryCoverage = field(default_factory=TelemetryCoverage)
    notes: list[str] = field(default_factory=list)
    _allocations: PastAllocations = field(default_factory=PastAllocations)
    _resets: Sequence[GpuReset] = ()
    _unfinished: dict[str, datetime] = field(default_factory=dict)  # since when, by the name of a node

    def run(self, begin: datetime, end: datetime, step: timedelta, *, report_progress: Callable[[float], None]) -> None:
        """Runs the replay. `report_progress` receives the progress from 0 to 1.

        :raises Unusable: when the Prometheus cannot be queried at all
        :raises NoSecret: when its password or token is missing
        """
        asked = round_of(self.source)
        pasts_by_name = self._pasts(begin)
        where = replace(asked.where, nodes=asked.where.nodes | set(pasts_by_name))
        ids = [node.node_id for several in pasts_by_name.values() for node in several]
        classes = classes_of(self.cluster, ids)
        if self.rule.key in READS_HOLDERS:
            self._allocations = past_allocations(self.cluster, since=begin)
        if self.rule.key == Resets.key:
            uids = {node.uid for node in chain.from_iterable(pasts_by_name.values())}
            self._resets = resets_of(self.cluster, uids, since=begin - WITHIN, until=end)
        metrics = (*self.rule.metrics, *READS_BESIDE.get(self.rule.key, ()))
        with Client(asked.address, BOUNDS) as client:
            past = Past(client, asked.matchers, where, metrics, _is_there(pasts_by_name))
            offset_s = self.clock().timestamp() - past.clock()
            if abs(offset_s) <= SKEW_S:
                offset_s = 0.0
            steps = _steps(begin - WARM_UP, end, step, offset_s)
            for told in past.readings(steps, offset_s=offset_s):
                at = self._look(told, pasts_by_name, classes, begin, step, offset_s)
                report_progress((at - begin) / (end - begin))
            self.notes += past.notes

    def _look(
        self,
        told: TelemetryReading | MissingSteps,
        nodes: Mapping[str, Sequence[NodePast]],
        classes: Mapping[int, frozenset[str]],
        begin: datetime,
        step: timedelta,
        offset_s: float,
    ) -> datetime:
        """Evaluates one step, and returns until when the history is known."""
        if isinstance(told, MissingSteps):
            first, last = (datetime.fromtimestamp(each + offset_s, UTC) for each in (told.asked.first, told.asked.last))
            if last >= begin:
                evaluated = sum(each + offset_s >= begin.timestamp() for each in told.asked.times)
                self.reporting.miss(max(first, begin), last + step, evaluated, told.reason)
            return last
        add_counted_xids(told)
        at = datetime.fromtimestamp(told.snapshot.taken_at, UTC)
        if at < begin:
            return begin
        unsure = {name for name, since in self._unfinished.items() if since <= at}
        known_from = self._allocations.known_from
        if self.rule.key in READS_HOLDERS and (known_from is None or at < known_from):
            self.reporting.count(
                at, 0, len(told.snapshot.devices), step, "The pods that used its GPUs were not recorded."
            )
            return at
        read = told.exported.intersection(self.rule.metrics) if self.rule.metrics else told.exported
        reporting, reason = _count_reporting(told.snapshot, read, unsure), _why_silent(told.snapshot, unsure)
        self.reporting.count(at, reporting, len(told.snapshot.devices), step, reason)
        around = _AroundThen(_Then(nodes, at), classes, self._allocations, told.snapshot.devices, self._resets)
        evaluator = GpuEvaluator(
            StoredSnapshot(told.snapshot, told.exported, parts=told.parts, xids=told.xids), self.limits, around, at
        )
        places = self.limits.suspects(self.rule, told.snapshot)
        signals = evaluator.signals({place: [self.rule] for place in sorted(places)})

        def can_resolve(found: WouldBe) -> bool:
            return evaluator.can_resolve(self.rule.key, found.subject, found.gpu_uuid, found.facts, around.nodes)

        self.replay.look(at, signals, can_resolve)
        return at

    def _pasts(self, begin: datetime) -> Mapping[str, Sequence[NodePast]]:
        found: dict[str, list[NodePast]] = {}
        for node in pasts(self.cluster, since=begin - DAY):
            found.setdefault(node.name, []).append(node)
            if since := node.unfinished_since:
                self._unfinished[node.name] = since
        if self._unfinished:
            which = names([f"{name} ({to_the_minute(since)})" for name, since in sorted(self._unfinished.items())])
            self.notes.append(
                "The end of a driver or layout change was not recorded for these nodes. Their GPUs are not "
                f"evaluated from the change on: {which}."
            )
        return found


def _is_there(nodes: Mapping[str, Sequence[NodePast]]) -> Callable[[str, float], bool]:
    def is_there(name: str, at: float) -> bool:
        then = datetime.fromtimestamp(at, UTC)
        return any(node.is_there(then) for node in nodes.get(name, ()))

    return is_there


def _why_silent(snapshot: TelemetrySnapshot, unsure: Collection[str]) -> str:
    if not snapshot.devices:
        return "The cluster has no GPU sample of a node that existed at that time."
    return (
        "It is unknown whether the nodes were being changed."
        if unsure
        else "The cluster has no GPU sample of that time."
    )


def _count_reporting(snapshot: TelemetrySnapshot, exported: Collection[str], unsure: Collection[str]) -> int:
    """Returns the number of devices with a fresh sample of any metric that the rule reads."""
    oldest = snapshot.taken_at - STALE_AFTER_S
    fresh = [map(oldest.__le__, snapshot.columns[key].times) for key in exported if key in snapshot.columns]
    reporting = map(any, zip(*fresh, strict=True)) if fresh else iter(())
    if not unsure:
        return sum(reporting)
    return sum(
        said for device, said in zip(snapshot.devices, reporting, strict=False) if device.node_name not in unsure
    )


def _steps(begin: datetime, end: datetime, step: timedelta, offset_s: float) -> Steps:
    """Returns steps by the server's clock, on whole seconds, the last one no later than `end`."""
    step_s = int(step.total_seconds())
    number = int((end - begin).total_seconds()) // step_s + 1
    last = int(end.timestamp() - offset_s)
    return Steps(last - step_s * (number - 1), step_s, number)
