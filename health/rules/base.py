"""The input and the result of a rule. Pure: no Django, no I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Protocol, TypeVar

from gpu.cordons import StaleCordon
from gpu.label_conflicts import LabelConflict
from gpu.operands import title_of
from gpu.resources import Vendor, Way
from health.suspects import Suspects
from health.telemetry.base import Exploding
from kube.credential_life import CredentialLife
from wording.reports import LONGEST_SUMMARY, EvidenceItem, Report, fit

NODE = "node"  # the subject of a rule that is asked of each node
OWNER = "each owner of GPU pods"  # the subject of a rule that is asked of each whose pods are rejected
WAITING = "each workload of pending GPU pods"  # the subject of a rule that is asked of each whose pods wait for long
NODES, PODS, DEPLOYMENTS = "nodes", "pods", "deployments.apps"  # kinds that rules read
SLICES, CLAIMS = "resourceslices.resource.k8s.io", "resourceclaims.resource.k8s.io"
NVIDIA_DRIVERS, CLUSTER_POLICIES = "nvidiadrivers.nvidia.com", "clusterpolicies.nvidia.com"
EVENTS, JOBS, REPLICA_SETS, STATEFUL_SETS = "events", "jobs.batch", "replicasets.apps", "statefulsets.apps"
WHOLE = Way()  # a GPU that nobody shares
RuleFacts = TypeVar("RuleFacts", contravariant=True)


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"

    def is_less_than(self, other: "Severity") -> bool:
        return RANKS[self] > RANKS[other]


RANKS = {severity.value: rank for rank, severity in enumerate(Severity)}  # 0 is the worst


@dataclass(frozen=True, kw_only=True)
class Problem(Report):
    """The result of a rule, shown to users as it is.

    It is saved again when its fingerprint or severity changes. So no title or summary has a number that only grows.
    """

    severity: Severity
    facts: Mapping[str, Any] = field(default_factory=dict)  # for later evaluations and queries; not shown
    identity: str = ""  # stays the same while the problem lasts; blank: the texts do
    worsens_after: timedelta = timedelta(0)  # how long it must be worse before the finding gets worse
    # How long it must be as bad as this before the finding opens: no longer than its rule takes. None: as its rule.
    opens_after: timedelta | None = None

    @property
    def fingerprint(self) -> str:
        return self.identity or " ".join((self.title, self.summary, *self.causes, *self.steps))


@dataclass(frozen=True)
class Blocker:
    """The causes why an upgrade is delayed, and the steps against them; empty if unknown."""

    causes: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


UNKNOWN = Blocker()


@dataclass(frozen=True)
class FailingPod:
    name: str  # namespace/name
    status: str  # as kubectl spells it
    restarts: int
    operand: str = ""  # blank: a tenant's
    is_over: bool = False  # True: it failed finally; False: it restarts and fails again
    cause: str = ""  # blank: unknown
    steps: tuple[str, ...] = ()
    message: str = ""  # the line that shows the cause
    trouble: str = ""  # the cause in a few words; blank: the pod's own message is used

    @property
    def summary(self) -> str:
        """Returns the pod, or the title of its operand, with what is known of its trouble."""
        if not self.trouble:
            return f"{self.name} ({self.status})"
        name = title_of(self.operand) if self.operand else self.name
        return fit("{}: {}", name, self.trouble, longest=LONGEST_SUMMARY)

    @property
    def causes(self) -> tuple[str, ...]:
        return (self.cause,) if self.cause else ()

    @property
    def evidence(self) -> EvidenceItem:
        return EvidenceItem(f"Pod {self.name}", f"{self.status}: {self.message}" if self.message else self.status)


@dataclass(frozen=True)
class NoOffer:
    """The component that should offer the GPUs of a node; all fields are empty if unknown."""

    title: str = ""  # of the operand
    is_ready: bool = False
    cause: str = ""
    steps: tuple[str, ...] = ()
    message: str = ""
    trouble: str = ""  # the cause in a few words


@dataclass(frozen=True)
class StuckDriver:
    """A NVIDIADriver that is notReady although all its driver pods are ready."""

    name: str
    pods: int
    older: int  # of these, how many are known to be of an older template
    message: str = ""  # by its condition


@dataclass(frozen=True)
class StuckPolicy:
    """A ClusterPolicy that is notReady although every pod of its operands is ready."""

    name: str
    pods: int
    older: tuple[str, ...]  # titles of operands that have pods of an older template
    message: str = ""  # by its condition


@dataclass(frozen=True)
class DriverConflict:
    """NVIDIADrivers that the operator ignores because their node selectors overlap."""

    names: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class NodeCondition:
    """A condition that reports a fault of a node (`gpu.conditions`)."""

    type: str
    message: str = ""  # with its reason
    status: str = "True"  # False or Unknown of one that is bad then
    reporter: str = ""
    severity: Severity = Severity.WARNING
    recommended_action: str = ""  # of its message, as written there
    xids: tuple[int, ...] = ()  # that it names

    @property
    def title(self) -> str:
        return self.type if self.status == "True" else f"{self.type}={self.status}"


@dataclass(frozen=True)
class WorkloadHere:
    """Failing pods of one template on a node, and the state of the template's other pods."""

    name: str  # namespace/name of the pods' owner: a ReplicaSet, a Job, a StatefulSet
    failing: int  # here; of a Job that tries again, pieces of work and not tries
    running: int  # here: ready, or ended well; beside `gpu`, on the node's other GPUs
    failing_elsewhere: int  # on other nodes
    running_elsewhere: int
    nodes_elsewhere: int  # nodes on which those run
    gpu: int | None = None  # index of the only GPU of all failing pods; None: several GPUs, or unknown
    tries: int = 0  # pods that fail here: more than `failing` where a Job tried again
    suspects: Suspects | None = None  # of its failing nodes; None: fewer than two nodes fail, or fewer than two run it
    image: str = ""  # of its first container
    cuda: str = ""  # of the image; blank: unknown
    running_cuda: tuple[str, ...] = ()  # CUDA versions of the images of Ready pods on this node, if they are known


@dataclass(frozen=True)
class IdleAllocation:
    """The part of an idle GPU that a pod has allocated."""

    pod: str  # namespace/name
    hours: float  # idle hours while the pod had the GPU, at least, up to now
    board: str = ""  # UUID of the GPU; blank: unknown
    way: Way = WHOLE  # allocation kind: a whole GPU, a slice or a share
    number: int = 1  # number of GPUs if their UUIDs are unknown


@dataclass(frozen=True)
class RequestedByOthers:
    """CPU or memory of a node that pods without GPUs request; the GPU stack's pods are not among them."""

    what: str  # CPU, memory
    requested: float
    allocatable: float
    unit: str

    @property
    def share(self) -> float:
        return self.requested / self.allocatable if self.allocatable else 0.0


@dataclass(frozen=True)
class NodeFacts:
    name: str
    allocatable: Mapping[str, int]  # by resource: {"nvidia.com/gpu": 7}
    capacity: Mapping[str, int]
    expected: Mapping[str, int]  # the most of each that was ever seen while the GPUs were cut and shared as they are
    requested: Mapping[str, int]
    is_changing: bool = False  # its driver or MIG layout is being changed, which explains missing GPUs
    mig_config: str = ""  # the layout that the MIG manager is asked for
    mig_state: str = ""  # state label of the MIG manager: pending, rebooting, success, failed
    mig_overdue_since: datetime | None = None  # start of an overdue MIG change; None: none
    unhealthy: tuple[str, ...] = ()  # sentences: "GPU 3: AMD's metrics exporter reports it as unhealthy."
    layout: str = ""  # how they are cut and shared (`gpu.resources.Layout`)
    sharing: str = ""  # time-slicing, mps
    sharing_replicas: int | None = None
    workload_classes: frozenset[str] = frozenset()  # of its pools
    failing_pods: tuple[FailingPod, ...] = ()  # of tenants and of the GPU stack
    starting_pods: tuple[FailingPod, ...] = ()  # that have not become ready for long
    never_offered: NoOffer | None = None  # None: it offers GPUs, or did, or is to offer none
    withheld: NoOffer | None = None  # the plugin that reports GPUs as unhealthy, by its log
    domain_daemon: FailingPod | None = None  # daemon pod of a ComputeDomain that is not ready; None: none
    is_ready: bool | None = True
    is_unreported: bool = False  # its kubelet stopped reporting
    not_ready_reason: str = ""
    falls: int = 0  # how often it stopped being ready within half an hour
    conditions: tuple[NodeCondition, ...] = ()
    booted_at: datetime | None = None  # within an hour; None: nobody saw it boot in that time
    is_paused: bool = False  # operands of it are, for a driver upgrade
    upgrade_state: str = ""
    is_held: bool = False
    upgrade_blocker: Blocker = UNKNOWN  # why its driver does not run
    is_reporting: bool = True  # fresh samples of its GPUs come in; also where nobody listens
    ever_reported: bool = True  # some ever did
    unplaced_xids: tuple[int, ...] = ()  # that its exporter has in series that name no GPU
    are_others_reporting: bool = True  # reports of any other node of its cluster
    is_unschedulable: bool = False
    stale_cordon: StaleCordon | None = None  # None: it has none, or nothing tells that its reason is gone
    # Since when it is seen without the cordon that its driver upgrade found and was to leave. None: it is not.
    uncordoned_since: datetime | None = None
    # Sources of the running driver version: a label, the image of a ready driver pod, a ResourceSlice.
    drivers: tuple[tuple[str, str], ...] = ()
    workloads: tuple[WorkloadHere, ...] = ()  # that fail here, at least in part
    idle_allocations: tuple[IdleAllocation, ...] = ()
    operands_away: tuple[str, ...] = ()  # operands without a ready pod here, while their work is missing on the node
    vendor: str = ""  # vendor of its GPUs (`Vendor`); blank: unknown
    gpu_product: str = ""
    label_conflicts: tuple[LabelConflict, ...] = ()
    free_gpus: int = 0  # whole GPUs that no pod has
    incomplete_pools: tuple[EvidenceItem, ...] = ()  # of its DRA driver: how many of their ResourceSlices exist
    requested_by_others: tuple[RequestedByOthers, ...] = ()  # empty: unknown

    @property
    def is_nvidias(self) -> bool:
        return self.vendor in ("", Vendor.NVIDIA)

    @property
    def unhealthy_evidence(self) -> tuple[EvidenceItem, ...]:
        pairs = (sentence.rstrip(".").partition(": ") for sentence in self.unhealthy)
        return tuple(EvidenceItem(gpu, report) for gpu, _, report in pairs)

    @property
    def missing(self) -> Mapping[str, int]:
        """Returns by resource how many fewer are allocatable than the node once had."""
        if self.allocatable == self.expected:  # as nearly always
            return {}
        counts = {name: count - self.allocatable.get(name, 0) for name, count in self.expected.items()}
        return {name: count for name, count in counts.items() if count > 0}

    @property
    def has_lost_all(self) -> bool:
        """Returns whether nothing is left of the resources that are missing."""
        missing = self.missing
        return bool(missing) and not any(self.allocatable.get(name) for name in missing)


@dataclass(frozen=True)
class RejectedOwner:
    """An owner of GPU pods whose last pod was rejected at creation."""

    name: str  # topmost owner, such as "Deployment team-a/chat"
    namespace: str
    message: str  # by the API server
    lacking: int | None  # pods that it wants now, and that are not there; None: how many it wants is not read
    asks: Mapping[str, int] = field(default_factory=dict)  # by GPU resource, of one pod; empty: that is not read
    is_of_gpus: bool = True  # False: it is unknown whether its pods request GPUs


@dataclass(frozen=True)
class WaitingWorkload:
    """A workload whose GPU pods wait for a node, or start, with the reason of one of its pods."""

    name: str  # "Job team-a/train"
    cluster: str
    namespace: str
    owner: str  # blank: pods without an owner
    pods: int
    gpus: int  # whole GPUs that they request together
    since: datetime  # when the first pod was created, or was bound to its node
    longest: timedelta
    classes: frozenset[str]  # of the pools whose nodes it may use
    reason: str  # in a sentence
    decided_by: str = ""  # why the pods wait, without changing numbers
    is_wrong: bool = True  # False: the pods start once other pods end
    steps: tuple[str, ...] = ()
    evidence: tuple[EvidenceItem, ...] = ()


@dataclass(frozen=True)
class BadCombination:
    """A result of the compatibility matrix against versions that run together."""

    is_known_bad: bool  # True: known to fail; False: outside NVIDIA's support
    subject: str  # the compared items
    sentence: str
    action: str
    source: str
    nodes: int  # 0: it concerns the cluster as a whole


@dataclass(frozen=True)
class TaintCounts:
    gpu_nodes: int
    untainted: int  # of these
    cpu_nodes: int  # nodes without GPUs


@dataclass(frozen=True)
class SplitGang:
    """A job whose running pods are in several NVLink domains."""

    name: str  # kind and namespace/name of the owner
    pods: int
    domains: int


@dataclass(frozen=True)
class ClusterFacts:
    name: str
    lag_ms: int = 0  # how long the oldest change of the last flush had waited
    behind_since: datetime | None = None
    unseen_state: str = ""  # stale, failing, …; blank: it is live, or still connecting
    unseen_reason: str = ""  # in a sentence
    unseen_action: str = ""
    unwatched_action: str = ""
    unwatched_since: datetime | None = None  # since when no worker has its lease; None: a worker has it
    telemetry_silent_reason: str = ""  # blank: its source, or its exporters, answer, or there are none
    exploding: tuple[Exploding, ...] = ()  # exporters with more series than GPUs can have, the worst first
    combinations: tuple[BadCombination, ...] = ()  # the worst first
    upgrades_queued: int = 0  # nodes that the operator has queued for a driver upgrade, and nobody holds
    upgrades_are_still: bool = False  # no node's upgrade state has changed of late
    upgrades_blocker: Blocker = UNKNOWN
    upgrades_blocked_by: str = ""  # the same as an identity, which no number in a message changes
    claims_waiting: tuple[FailingPod, ...] = ()  # pods without a node, for claims that no driver serves
    stuck_drivers: tuple[StuckDriver, ...] = ()
    stuck_policy: StuckPolicy | None = None
    driver_conflict: DriverConflict | None = None
    operator_trouble: str = ""  # why the GPU operator does not run, in sentences; blank: it runs, or is not seen
    taints: TaintCounts | None = None  # None: not asked
    split_gangs: tuple[SplitGang, ...] = ()
    credentials: tuple[CredentialLife, ...] = ()
    evaluated_at: datetime | None = None


class Rule(Protocol[RuleFacts]):
    """The interface of a rule file. A new rule is one file and one line in the table."""

    key: ClassVar[str]  # of its findings: stable, in REST and in the history
    title: ClassVar[str]
    subject: ClassVar[str]  # NODE for rules on nodes; else the object in the cluster: quarterdeck, GPU operator
    reads: ClassVar[tuple[str, ...]]  # the kinds that must be live for its evaluation
    steps: ClassVar[tuple[str, ...]]  # of its findings, unless a problem has its own

    @property
    def after(self) -> timedelta:
        """Returns how long the trouble must persist before anybody is notified."""

    def evaluate(self, facts: RuleFacts, /) -> Problem | None:
        """Returns the problem, or None if there is none of this kind."""
