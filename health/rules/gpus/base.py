"""What a rule about a GPU is given: which devices of a frame are worth a look, and then the facts of each. Pure.

A frame has 40,000 devices and most are well: `suspects` goes over columns, and only whoever it names is judged.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar, Protocol, runtime_checkable

from health.rules.base import Wrong
from health.rules.limits import Comparing
from health.telemetry.snapshot import Frame
from health.telemetry.snapshot_memory import Growth


@dataclass(frozen=True)
class XidSeen:
    """The last Xid of a GPU: the gauge keeps it until the driver is loaded anew, and hides a repetition (Z22)."""

    number: int
    since: datetime | None  # None: it was there when Quarterdeck first looked
    words: str = ""  # the exporter's own
    is_counted: bool = False  # it is not the last one: the exporter counted it within its window, lately


@dataclass(frozen=True)
class GpuFacts:
    """Of a board, or of a slice of one. `now` has only what is fresh: nothing old is judged."""

    node_name: str
    name: str  # "GPU 3 of gpu-h200-007", with its slice where it is one
    product: str = ""
    vendor: str = ""  # blank: nobody says
    now: Mapping[str, float] = field(default_factory=dict)  # by the key of the metric
    grown: Mapping[str, Growth] = field(default_factory=dict)  # counters
    at: Mapping[str, datetime] = field(default_factory=dict)  # when each value of `now` was sampled
    # Of a metric that is fresh and whose series are told apart by a label: by the label's value, where it is not 0.
    parts: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    xid: XidSeen | None = None
    past_xids: tuple[XidSeen, ...] = ()  # since it began anew, which its gauge does not show any more
    # By Xid, of those whose workflow counts: how often it was found in that time on this GPU, or on its node, and the
    # most often that it was on another GPU of the cluster. Of those in `once_more` one that is there now is one more.
    again: Mapping[int, int] = field(default_factory=dict)
    once_more: Collection[int] = frozenset()
    had: Mapping[int, Collection[datetime]] = field(default_factory=dict)  # of those when, on this GPU
    new: Collection[int] = frozenset()  # of those that one which is there now is not in `had`
    elsewhere: Mapping[int, int] = field(default_factory=dict)
    resets: int = 0  # of it alone, within a day
    is_changing: bool = False  # its node's driver or MIG layout is being replaced: what is away, is away for a reason
    driver_changed_at: datetime | None = None  # the last time, within a day
    booted_at: datetime | None = None  # its node, the last time that somebody saw
    workload_classes: frozenset[str] = frozenset()  # of its node's pools
    is_of_one_job: bool = False  # one pod has all GPUs of its node
    peers: Mapping[str, float] = field(default_factory=dict)  # the median of its node, for some metrics
    judged_at: datetime | None = None


class GpuRule(Protocol):
    """What a file here has: a new rule is one file, and one line in the table."""

    key: ClassVar[str]
    title: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]  # that it reads: where none of them is exported it cannot see, and says so

    @property
    def after(self) -> timedelta:
        """How long it must be so before anybody is told."""

    def suspects(self, frame: Frame) -> Iterable[int]:
        """The places of the devices that may be wrong. It may name too many; whom it leaves out is well."""

    def judge(self, gpu: GpuFacts) -> Wrong | None:
        """None: nothing of this kind is wrong."""


@runtime_checkable
class UsualForSome(GpuRule, Protocol):
    """A rule about what is as it should be for some work (Z28): nothing of it is said there."""

    usual_for: ClassVar[frozenset[str]]  # workload classes of pools


@runtime_checkable
class SeesLess(GpuRule, Protocol):
    """A rule that reads something else where its own metric is not exported, and sees less by that."""

    own: ClassVar[str]
    instead: ClassVar[str]  # what it sees then, in words


def is_usual(usual_for: frozenset[str], workload_classes: Collection[str]) -> bool:
    """Whether nothing is said of a node with pools of these classes. Of one that is in no pool nobody knows."""
    return not workload_classes or not usual_for.isdisjoint(workload_classes)


def at_least(frame: Frame, metric: str, level: float) -> Collection[int]:
    """The places of devices whose last value is as high. What nobody said is not."""
    column = frame.columns.get(metric)
    return [place for place, value in enumerate(column.values) if value >= level] if column is not None else ()


def can_see(rule: GpuRule, exported: Collection[str]) -> bool:
    """Whether any of what it reads is exported. One without metrics goes by who speaks at all."""
    if reads_a_share(rule):
        return frozenset(rule.metrics).issubset(exported)
    return not rule.metrics or not frozenset(rule.metrics).isdisjoint(exported)


def reads_a_share(rule: GpuRule) -> bool:
    """Whether it compares a part with its whole, and so needs to know both."""
    return isinstance(rule, Comparing) and bool(rule.scale.percent_of)
