"""The input of a GPU rule: first the suspect devices of a telemetry snapshot, then the facts of each. Pure.

A snapshot has 40,000 devices and most are healthy. `suspects` scans columns, and only its devices are evaluated.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Protocol, runtime_checkable

from health.rules.base import Problem
from health.rules.limits import Scale
from health.telemetry.metrics import METRICS
from health.telemetry.snapshot import TelemetrySnapshot
from health.telemetry.snapshot_memory import Growth
from wording.reports import EvidenceItem


@dataclass(frozen=True)
class XidSeen:
    """The last Xid of a GPU. The gauge keeps it until the driver is reloaded, and hides repetitions (Z22)."""

    number: int
    since: datetime | None  # None: it was there when Quarterdeck first looked
    words: str = ""  # the exporter's own
    is_counted: bool = False  # not the last Xid: the exporter counted it recently, within its window
    sampled_at: datetime | None = None  # last sample of the gauge with it; None: the gauge shows another Xid, or none


@dataclass(frozen=True)
class GpuFacts:
    """The facts of a board or a slice. `now` has only fresh values, so stale ones are never evaluated."""

    node_name: str
    name: str  # "GPU 3 of gpu-h200-007", with its slice where it is one
    product: str = ""
    vendor: str = ""  # blank: unknown
    now: Mapping[str, float] = field(default_factory=dict)  # by the key of the metric
    grown: Mapping[str, Growth] = field(default_factory=dict)  # counters
    at: Mapping[str, datetime] = field(default_factory=dict)  # when each value of `now` was sampled
    # For a fresh metric with a label that separates its series: each label value that is not 0.
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    xid: XidSeen | None = None
    past_xids: tuple[XidSeen, ...] = ()  # Xids since the last restart of the counter, which the gauge no longer shows
    # By Xid, of those whose workflow counts: how often it was found in that time on this GPU, or on its node, and the
    # most often that it was on another GPU of the cluster. Of those in `once_more` one that is there now is one more.
    again: Mapping[int, int] = field(default_factory=dict)
    once_more: Collection[int] = frozenset()
    had: Mapping[int, Collection[datetime]] = field(default_factory=dict)  # earlier times of these Xids on this GPU
    new: Collection[int] = frozenset()  # Xids with a present occurrence that is not in `had`
    elsewhere: Mapping[int, int] = field(default_factory=dict)
    resets: int = 0  # of it alone, within a day
    is_changing: bool = False  # a driver or MIG change on the node explains missing data
    driver_changed_at: datetime | None = None  # the last time, within a day
    booted_at: datetime | None = None  # last boot of its node; None: unknown
    workload_classes: frozenset[str] = frozenset()  # of its node's pools
    is_of_one_job: bool = False  # one pod has all GPUs of its node
    peers: Mapping[str, float] = field(default_factory=dict)  # the median of its node, for some metrics
    evaluated_at: datetime | None = None


class GpuRule(Protocol):
    """The interface of a GPU rule file. A new rule is one file and one line in the table."""

    key: ClassVar[str]
    title: ClassVar[str]
    steps: ClassVar[tuple[str, ...]]  # of its findings, unless a problem has its own
    # metrics that it reads; if none is exported, the rule reports that it cannot check the GPU
    metrics: ClassVar[tuple[str, ...]]

    @property
    def after(self) -> timedelta:
        """Returns how long the trouble must persist before anybody is notified."""

    def suspects(self, snapshot: TelemetrySnapshot) -> Iterable[int]:
        """Returns the positions of devices that may be faulty. It may return too many, but must miss none."""

    def evaluate(self, gpu: GpuFacts) -> Problem | None:
        """Returns the problem, or None if there is none of this kind."""


@runtime_checkable
class UsualForSome(GpuRule, Protocol):
    """A rule about values that are normal for some workloads (Z28), and not reported for them."""

    usual_for: ClassVar[frozenset[str]]  # workload classes of pools


@runtime_checkable
class SeesLess(GpuRule, Protocol):
    """A rule that reads another metric where its own is not exported, and then detects less."""

    own: ClassVar[str]
    instead: ClassVar[str]  # text about the remaining checks


def measured(metric: str, value: float, unit: str = "") -> EvidenceItem:
    """Returns a value as evidence, in the metric's unit unless another is given."""
    return EvidenceItem(METRICS[metric].title, value, unit or METRICS[metric].unit)


def is_usual(usual_for: frozenset[str], workload_classes: Collection[str]) -> bool:
    """Returns whether the value is normal for a node with pools of these classes. Without a pool it is unknown."""
    return not workload_classes or not usual_for.isdisjoint(workload_classes)


def devices_at_least(snapshot: TelemetrySnapshot, metric: str, level: float) -> Collection[int]:
    """Returns the positions of devices whose last value is at least `level`. Unreported values do not count."""
    column = snapshot.columns.get(metric)
    return [place for place, value in enumerate(column.values) if value >= level] if column is not None else ()


def is_any_metric_exported(rule: GpuRule, exported: Collection[str]) -> bool:
    """Returns whether any metric of the rule is exported. A rule without metrics needs any reporting device."""
    if reads_a_share(rule):
        return frozenset(rule.metrics).issubset(exported)
    return not rule.metrics or not frozenset(rule.metrics).isdisjoint(exported)


def reads_a_share(rule: GpuRule) -> bool:
    """Returns whether the rule compares a part with its whole, and so needs both."""
    scale = getattr(rule, "scale", None)  # a check against the protocol takes fifty times as long
    return isinstance(scale, Scale) and bool(scale.percent_of)
