"""What a rule is given and what it answers. Pure: no Django, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Protocol


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Wrong:
    """What a rule found: shown to a person as it is."""

    severity: Severity
    sentence: str
    action: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FailingPod:
    name: str  # namespace/name
    status: str  # as kubectl spells it
    restarts: int
    operand: str = ""  # blank: a tenant's
    is_over: bool = False  # it failed for good; else it is started again, and fails again


@dataclass(frozen=True)
class NodeFacts:
    name: str
    allocatable: Mapping[str, int]  # by resource: {"nvidia.com/gpu": 7}
    capacity: Mapping[str, int]
    expected: Mapping[str, int]  # the most of each that was ever seen while the GPUs were cut and shared as they are
    requested: Mapping[str, int]
    is_changing: bool = False  # its driver is being replaced, or its MIG layout: GPUs are away for a reason
    mig_config: str = ""  # the layout that the MIG manager is asked for
    mig_state: str = ""  # its word: pending, rebooting, success, failed
    mig_overdue: timedelta | None = None  # for how long it is at work, where that is too long; None: it is not
    unhealthy: str = ""  # the GPUs that something names and calls so, in words
    layout: str = ""  # how they are cut and shared (`gpu.resources.Layout`)
    sharing: str = ""  # time-slicing, mps
    sharing_replicas: int | None = None
    workload_classes: frozenset[str] = frozenset()  # of its pools
    failing_pods: tuple[FailingPod, ...] = ()  # of tenants and of the GPU stack


@dataclass(frozen=True)
class ClusterFacts:
    name: str
    lag_ms: int = 0  # how long the oldest change of the last flush had waited
    behind_since: datetime | None = None
    unseen_because: str = ""  # in a sentence; blank: it is live, or still connecting
    unseen_action: str = ""
    unwatched_action: str = ""
    unwatched_since: datetime | None = None  # nobody takes its lease; None: somebody has it
    operator_trouble: str = ""  # why the GPU operator does not run, in a sentence; blank: it runs, or is not seen


class NodeRule(Protocol):
    key: ClassVar[str]
    title: ClassVar[str]
    after: ClassVar[timedelta]  # how long it must be so before anybody is told
    reads: ClassVar[str]  # the kind beside nodes that must be live for it to be judged; blank: none

    def judge(self, node: NodeFacts) -> Wrong | None:
        """None: nothing of this kind is wrong."""


class ClusterRule(Protocol):
    key: ClassVar[str]
    title: ClassVar[str]
    after: ClassVar[timedelta]
    subject: ClassVar[str]  # what it is about: quarterdeck, GPU operator
    reads: ClassVar[str]  # the kind that must be live for it to be judged; blank: none

    def judge(self, cluster: ClusterFacts) -> Wrong | None: ...
