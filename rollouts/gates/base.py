"""The evidence that gates are given and the results that they return. Pure: no Django, no I/O."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import ClassVar, NewType

from gpu.compatibility.verdicts import Support
from gpu.labels import MIG_RESOURCES
from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.gates.earlier_findings import EarlierFindings
from rollouts.lifecycle import TargetState
from wording.reports import EvidenceItem, Report

Items = tuple[EvidenceItem, ...]
Promql = NewType("Promql", str)


class Answer(StrEnum):
    PASS = "pass"  # noqa: S105
    WAIT = "wait"  # not yet, or not enough evidence: ask again
    FAIL = "fail"  # halt the stage


class When(StrEnum):
    """The moment at which a gate is evaluated."""

    ENTRY = "entry"  # evaluated only before the first node of a stage
    WAVE = "wave"  # before the first node of a stage and before each wave: a wait holds only nodes that have not begun
    THROUGH = "through"  # from the first release through the soak, and while the next stage waits


@dataclass(frozen=True)
class GateResult(Report):
    answer: Answer
    nodes: tuple[str, ...] = ()  # the nodes that it is about, if it is about some
    is_final: bool = False  # of a WAIT: nothing that is still to come can answer it
    cause: str = ""  # why it answers so, without its numbers: another cause is another answer


@dataclass(frozen=True)
class PodEvidence:
    name: str  # namespace/name
    owner: str  # kind namespace/name of the owner; the pod itself without one
    is_ready: bool
    started_at: datetime  # when this node took it
    restarts: int
    reason: str = ""  # why it is not ready
    status: str = ""  # as kubectl spells it
    why: str = ""  # explanation, and the log line behind it; blank: unknown
    unready_since: datetime | None = None  # last time it was Ready, or its start; None: it is Ready, or unknown
    ready_since: datetime | None = None  # without a break; None: it is not Ready, or nobody knows


@dataclass(frozen=True)
class OperandEvidence:
    operand: str
    is_ready: bool
    reason: str = ""


@dataclass(frozen=True)
class ValidatorEvidence:
    """The newest pod of the operator's validator on a node."""

    uid: str
    is_ready: bool
    started_at: datetime  # when the node took it
    restarts: int
    step: str = ""  # which of its containers waits or crashed
    reason: str = ""  # why it is not ready, in the cluster's words
    last_words: str = ""
    status: str = ""  # as kubectl spells it


@dataclass(frozen=True)
class FindingEvidence:
    """An unresolved finding about a node or one of its GPUs."""

    key: str  # rule, subject and, of an Xid, its number: with the same key before the change it is the same fault
    rule: str
    severity: str
    title: str
    since: datetime  # of this occurrence
    is_open: bool = True  # False: it is being confirmed
    is_shadow: bool = False  # its rule is in shadow mode


@dataclass(frozen=True)
class GpuTelemetry:
    """The telemetry of the GPUs of one node; fresh samples are those since its change."""

    gpus: int  # that must report
    reporting: int  # GPUs with a fresh sample of any metric
    fresh: Mapping[str, int] = field(default_factory=dict)  # by metric: GPUs with a fresh sample of it
    exported: frozenset[str] = frozenset()  # metrics that the node's exporter has
    vendor: str = ""
    restarted_at: datetime | None = None  # a GPU's counters restarted since the change; None: no restart is known


@dataclass(frozen=True)
class HealthEvidence:
    """The health of a cluster: whether its rules run and have input, and the findings of unchanged nodes."""

    evaluated_at: datetime | None  # the newest evaluation of its rules; None: unknown
    has_source: bool = False  # of GPU telemetry
    trouble: str = ""  # why no telemetry arrives from a source; blank: it arrives
    # By node name, for unchanged nodes: findings since the first change of the stage.
    peers: Mapping[str, tuple[FindingEvidence, ...]] = field(default_factory=dict)
    alike: str = ""  # property that peers share with changed nodes
    past: EarlierFindings | None = None  # asked where a changed node has a finding


@dataclass(frozen=True)
class ServiceLevel:
    """One measurement of a service on some changed nodes. Its numbers are finite."""

    asked_at: datetime
    nodes: tuple[str, ...]  # that it is about: a whole window has passed since the change of each
    value: float | None = None  # None: the source has none
    samples: float = 0  # that the value rests on
    newest_at: datetime | None = None  # the newest sample; None: the source has none
    baseline: float | None = None
    baseline_samples: float = 0
    baseline_nodes: int = 0  # unchanged peers; 0: the baseline is the past of the same nodes
    trouble: str = ""  # why nothing was measured, as a sentence; blank: it was
    cause: str = ""  # of the trouble


@dataclass(frozen=True)
class ServiceEvidence:
    """The measurements of the service that a gate watches."""

    level: ServiceLevel | None = None  # the newest; None: none yet
    windows: tuple[ServiceLevel, ...] = ()  # windows that do not overlap, the oldest first


@dataclass(frozen=True)
class MeasuredHour:
    """The telemetry of the GPUs of a node in a whole hour: the mean of each measure."""

    begins_at: datetime
    load: float | None  # utilisation, 0 to 1; None: unknown
    values: Mapping[str, float] = field(default_factory=dict)  # by measure, if it is known


@dataclass(frozen=True)
class HoursEvidence:
    """The hours of changed nodes and of unchanged ones like them, the oldest first."""

    changed: Mapping[str, tuple[MeasuredHour, ...]]  # by name
    peers: Mapping[str, tuple[MeasuredHour, ...]] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()  # changed nodes beyond the reading limit
    alike: str = ""  # what peers have in common with changed nodes


@dataclass(frozen=True)
class Baseline:
    """The state of a node when its release was decided."""

    at: datetime
    driver_version: str
    allocatable: Mapping[str, int] | None  # by resource; None: not reported
    workloads: Mapping[str, int]  # owner → its Ready GPU pods on this node
    operands: tuple[str, ...]  # operands that were ready on this node
    sick_owners: tuple[str, ...] = ()  # had pods in the cluster that crashed: not to be blamed on the change
    validator_uid: str = ""  # of the validator's pod; blank: none was there, or nobody remembers
    mig_config_state: str = ""  # the MIG manager's word; blank: it does not cut this node
    mig_gpus: int | None = None  # GPUs cut into MIG slices; None: nobody counted them
    is_unschedulable: bool = False
    # title → value of properties that the change should not touch
    traits: Mapping[str, str] = field(default_factory=dict)
    findings: Mapping[str, str] | None = None  # severity by `FindingEvidence.key`; None: nobody recorded them

    @cached_property
    def mig_slices(self) -> Mapping[str, int]:
        """Returns the allocatable MIG slices by resource."""
        return {name: number for name, number in (self.allocatable or {}).items() if name.startswith(MIG_RESOURCES)}


@dataclass(frozen=True)
class SeenWork:
    """The observed work of tenants' pods on a node since its change."""

    gpu_time: timedelta  # of all of its GPUs together
    has_telemetry: bool = False  # telemetry tells when they are busy: only then, and only hours that are over, count


@dataclass(frozen=True)
class MetricResult:
    """A number that a test Job printed, with earlier results of the same test and another driver."""

    value: float
    past: tuple[float, ...] = ()  # of the same node, the newest first
    peers: tuple[float, ...] = ()  # the newest of each other node with the same GPUs


@dataclass(frozen=True)
class TestJobEvidence:
    """The newest test Job on a node since its change."""

    outcome: TestJobOutcome | None  # None: it is on its way
    says: str = ""
    said: str = ""  # message of its container, or why it does not run
    told_at: datetime | None = None  # of the outcome
    numbers: Mapping[str, MetricResult] = field(default_factory=dict)  # printed numbers, by path
    has_timed_out: bool = False
    gpu_time: timedelta = timedelta(0)  # of its container, on all of its GPUs; 0: unknown


@dataclass(frozen=True)
class TargetEvidence:
    uid: str  # of its node
    name: str
    state: TargetState
    state_since: datetime
    baseline: Baseline | None  # None: not released yet
    is_seen: bool  # False: the cluster no longer shows the node, or its row is older than our last act on it
    is_retried: bool = False  # it failed, and a person requested a retry
    is_lost: bool = False  # excluded, because its node went away after it was released
    failed_reason: str = ""  # reason of the failure as a sentence; blank: not failed, or unknown
    driver_version: str = ""  # reported by the node; blank: not reported
    upgrade_state: str = ""
    is_ready: bool | None = None
    allocatable: Mapping[str, int] = field(default_factory=dict)  # by resource: whole GPUs, slices and shares apart
    operands: tuple[OperandEvidence, ...] = ()
    workloads: tuple[PodEvidence, ...] = ()
    validator: ValidatorEvidence | None = None  # None: it has none now
    driver_started_at: datetime | None = None  # start of its driver's pod on the node; None: it has none now
    mig_config_state: str = ""
    is_unschedulable: bool = False
    is_cordoned_by_us: bool = False  # until its test Job has completed, or was when this was seen
    is_held_by_others: bool = False  # carries the label that keeps the operator off it, and it is not this plan's
    traits: Mapping[str, str] = field(default_factory=dict)
    test_job: TestJobEvidence | None = None  # None: no Job since its change, or none that counts
    has_served: bool = False  # a tenant's GPU pod was Ready on it since its change, possibly ended by now
    facts: Mapping[str, str] = field(default_factory=dict)  # kind of the node: kernel, OS image, GPU, zone, …
    work: SeenWork | None = None  # asked where a gate does, of a node that has changed; None: nobody knows
    findings: tuple[FindingEvidence, ...] = ()  # asked where a gate does, of a node that has changed
    telemetry: GpuTelemetry | None = None  # None: no telemetry of this node, or no gate needs it

    @property
    def driver_since(self) -> datetime:
        """Returns the time after which Ready pods of the changed node use the new driver."""
        return driver_since(self.state_since, self.driver_started_at, self.baseline.at if self.baseline else None)

    @cached_property
    def missing_operands_text(self) -> str:
        """Returns text on operands that were Ready before and are not now; empty if none is missing."""
        if self.baseline is None:
            return "what was ready before is not known"
        now_ready = {operand.operand for operand in self.operands if operand.is_ready}
        gone = [operand for operand in self.baseline.operands if operand not in now_ready]
        if not gone:
            return ""
        reasons = {operand.operand: operand.reason for operand in self.operands}
        return f"{gone[0]} is not ready" + (f" ({reasons[gone[0]]})" if reasons.get(gone[0]) else "")

    @cached_property
    def offers_fewer(self) -> bool:
        """Returns whether the node offers less of some resource. The offer of an unseen node is unknown."""
        if not self.is_seen or self.baseline is None or self.baseline.allocatable is None:
            return False
        return any(self.allocatable.get(name, 0) < number for name, number in self.baseline.allocatable.items())


def driver_since(changed_at: datetime, driver_started_at: datetime | None, released_at: datetime | None) -> datetime:
    """Returns since when a changed node runs its new driver, at the latest.

    A release is no change yet: the old driver runs until the pod of the new one starts. A driver pod that was recreated
    after the change brought the same driver again.
    """
    since = min(driver_started_at or changed_at, changed_at)
    return max(since, released_at) if released_at else since


@dataclass(frozen=True)
class Combination:
    """The compatibility of the new version with some of the stage's nodes."""

    support: Support
    sentence: str
    nodes: int


@dataclass(frozen=True)
class PodWants:
    """A tenant's pod that is evicted with its node and must run elsewhere."""

    name: str  # namespace/name
    product: str  # of the GPUs that it has now
    resources: Mapping[str, int]  # requested, by name


@dataclass(frozen=True)
class NextWave:
    """The nodes of the next wave, and the free GPUs on others."""

    nodes: tuple[str, ...]
    pods: tuple[PodWants, ...]
    free: Mapping[str, tuple[Mapping[str, int], ...]]  # product → free resources of each other node with it
    claiming: int = 0  # pods that claim devices instead of requesting a resource: they are in no number here
    # resource → part of the free amount that preemptible pods use
    expendable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class WindowEvidence:
    """The maintenance windows that bind the same nodes, at one moment."""

    nodes: tuple[str, ...]  # still to go
    sentence: str = ""  # whether the windows are open, and until when; blank: no window binds these nodes
    # From when until when: the one that is in progress, or the next, first. None: they open no more.
    openings: tuple[tuple[datetime, datetime], ...] = ()

    def is_open(self, at: datetime) -> bool:
        return bool(self.openings) and self.openings[0][0] <= at < self.openings[0][1]

    def lasts(self, long: timedelta, at: datetime) -> bool:
        return self.is_open(at) and self.openings[0][1] - at >= long


@dataclass(frozen=True)
class ApprovalEvidence:
    by: str
    at: datetime
    is_rejection: bool
    reason: str
    is_by_author: bool  # True: an author, editor or starter of the plan, or an unknown person: never counts
    groups: tuple[str, ...] = ()  # groups that the gate requires and that the person is a member of


LEFT_OUT = frozenset({TargetState.EXCLUDED, TargetState.FAILED})  # states that the gates leave out


@dataclass(frozen=True)
class Evidence:
    """One stage at one moment, gathered once a round and never changed."""

    seen_at: datetime  # time of the oldest row
    to_version: str
    targets: tuple[TargetEvidence, ...]  # in the order of release
    approvals: tuple[ApprovalEvidence, ...] = ()
    workloads_ready_now: Mapping[str, int] = field(default_factory=dict)  # owner → Ready or completed pods
    workloads_waiting_for_room: Mapping[str, int] = field(default_factory=dict)  # owner → pods that fit nowhere
    workloads_ready_before: Mapping[str, int] = field(default_factory=dict)
    workloads_refused: Mapping[str, str] = field(default_factory=dict)  # owner → why the API server takes no pod of it
    next_wave: NextWave | None = None  # for a stage in progress; None: the next nodes are unknown
    bound_reason: str = ""  # freeze or window that blocks every remaining node; blank: some node is not blocked
    windows: tuple[WindowEvidence, ...] | None = None  # asked as that; None: none of the nodes still to go is seen
    combinations: tuple[Combination, ...] = ()  # the worst first; asked for a stage that opens
    compared: int = 0  # nodes that they are about
    despite: str = ""  # person and reason of a start despite the compatibility matrix; blank: none
    others_passing_since: datetime | None = None  # since when every other gate has passed; None: one does not
    others_uncounted: tuple[str, ...] = ()  # titles of gates that the soak does not wait for: advisory, overridden
    # Node → who is still kept off it: nobody but us would see a fault there.
    exclusions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    health: HealthEvidence | None = None  # asked where a gate does
    services: Mapping[str, ServiceEvidence] = field(default_factory=dict)  # by key of the gate that asks
    hours: HoursEvidence | None = None  # asked where a gate does

    @cached_property
    def begun(self) -> tuple[TargetEvidence, ...]:
        return tuple(
            t for t in self.targets if t.state in {TargetState.CHANGED, TargetState.CHANGING, TargetState.FAILED}
        )

    @cached_property
    def tried_again(self) -> tuple[TargetEvidence, ...]:
        """Returns targets held for a retry; their earlier failure no longer counts."""
        return tuple(target for target in self.targets if target.is_retried and target.state is TargetState.HELD)

    @cached_property
    def changed(self) -> tuple[TargetEvidence, ...]:
        return tuple(target for target in self.targets if target.state is TargetState.CHANGED)

    @cached_property
    def counted(self) -> tuple[TargetEvidence, ...]:
        """Returns the targets that must succeed: all but excluded ones and those within the failure budget."""
        return tuple(t for t in self.targets if t.state not in LEFT_OUT)

    @cached_property
    def not_changed(self) -> tuple[TargetEvidence, ...]:
        return tuple(target for target in self.counted if target.state is not TargetState.CHANGED)


@dataclass(frozen=True, kw_only=True)
class Gate(ABC):
    """A rule whose dataclass fields are its options. Every gate has the options of this class."""

    advisory: bool = False  # judged, shown and stored, and never counted: it halts and holds nothing
    reason: str = ""  # why it is only advisory, for approvers
    wait_timeout: timedelta | None = None  # how long it may wait before a person is asked; None: as its stage

    key: ClassVar[str]
    title: ClassVar[str]
    when: ClassVar[When]

    def __post_init__(self) -> None:
        if self.reason and not self.advisory:
            raise ValueError("reason is only allowed for an advisory gate.")

    @abstractmethod
    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult: ...


BOUND = "bound"  # cause: a freeze or window blocks every node, so the gate is not evaluated yet
# cause: the gate waits for pods while we keep pods off the node; another gate gives the reason
KEPT_EMPTY = "kept-empty"
UNTIMED_WAITS = frozenset({BOUND, KEPT_EMPTY})  # causes of waits about which nobody is asked, however long
FEWEST_PEERS = 4  # nodes on each side of a comparison: with fewer, only a node's own past counts
TO_COME = "to-come"  # the cause of a gate that only waits for nodes that have not changed yet
GAVE_UP = "The operator gave up on it (upgrade-failed)."  # of a failed node, if no other reason is known
UNPROVED = "unproved"  # cause: the difference may be chance; no wave is released meanwhile
UNTESTED = "untested"  # cause: nothing has tested the change; the page offers a test
UNSEEN, NO_TARGET, REJECTED = "unseen", "no-target", "rejected"  # causes that no person's word passes over
NEVER_OVERRIDDEN = {
    BOUND: "No node can be released now. The gate is evaluated once a node can be released.",
    KEPT_EMPTY: "It waits for the test Job. Override the gate of the test Job to let pods in.",
    TO_COME: "The gate waits for the remaining nodes and delays nothing.",
    UNSEEN: "Missing evidence cannot be overridden.",
    NO_TARGET: "A stage without nodes cannot be overridden. Complete it or roll it back.",
    REJECTED: "A rejection cannot be overridden. Resume the plan to request approval again.",
}
