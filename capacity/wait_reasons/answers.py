"""The parts of the answer to why a pod waits for a node. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from capacity.wait_reasons.node_index import ComparedNode
from capacity.wait_reasons.preemption import PreemptionOutlook
from capacity.wait_reasons.queue_place import QueuePlace
from capacity.wait_reasons.scheduler_message import SchedulerVerdict


class Actor(StrEnum):
    OWNER = "pod owner"
    ADMIN = "cluster admin"
    NOBODY = "nobody"


class DecidingKind(StrEnum):
    """The kind of object that makes a pod wait, in the words of pages."""

    RESOURCE = "resource"
    LABEL = "node label"
    AFFINITY = "node affinity"
    TAINT = "taint"
    NODE = "node"
    POD = "pod"
    POD_RULE = "rule about other pods"
    GATE = "scheduling gate"
    NAMESPACE = "namespace"
    QUEUE = "queue"
    VOLUME_CLAIM = "PersistentVolumeClaim"
    CSI_DRIVER = "CSI driver"
    RESOURCE_CLAIM = "ResourceClaim"
    DEVICE_CLASS = "DeviceClass"
    SCHEDULER = "scheduler"
    DEPLOYMENT = "Deployment"


@dataclass(frozen=True)
class Change:
    """A change after which the pod fits. Counts are of nodes."""

    text: str
    actor: Actor
    fits_now: int = 0
    fits_later: int = 0  # nodes that fit once other pods end, including those that fit now


@dataclass(frozen=True)
class FunnelStep:
    title: str
    left: int  # nodes after this step
    removed: int


@dataclass(frozen=True)
class NearMiss:
    node: ComparedNode
    lacks: Sequence[str]


class ScalingVerdict(StrEnum):
    """The answer to "does the autoscaler add a node for this pod?"."""

    ADDING = "asked for a node"
    READY = "added a node"
    FAILED = "could not add a node"
    AT_MAXIMUM = "is at its maximum"
    NO_GROUP = "has no group of nodes that fits"
    REFUSED = "adds no node"
    SILENT = "has not reported on this pod"
    UNKNOWN = "has no recent status here"
    DOWN = "writes no status any more"


@dataclass(frozen=True)
class ScalingReport:
    """The last report of an autoscaler about a pod, with what its own objects say."""

    autoscaler: str
    is_adding: bool  # it has asked for a node
    summary: str  # at most 140 characters
    message: str  # blank: it has written no Event about the pod
    changes: Sequence[Change] = ()
    at: datetime | None = None  # time of its last report
    verdict: ScalingVerdict = ScalingVerdict.REFUSED
    details: Sequence[str] = ()  # from its NodePools, NodeClaims or status


@dataclass(frozen=True)
class PendingExplanation:
    key: str
    title: str
    summary: str = ""
    decided_by: str = ""  # the label, taint, resource, gate, claim or node that decides
    decided_kind: DecidingKind | None = None  # of `decided_by`; None: nothing decides
    changes: Sequence[Change] = ()
    funnel: Sequence[FunnelStep] = ()
    near_misses: Sequence[NearMiss] = ()
    near_summary: str = ""  # `3 nodes lack only 1 GPU.`
    preemption: PreemptionOutlook | None = None  # None: not compared
    verdict: SchedulerVerdict | None = None
    agreement_ratio: float | None = None
    differences: Sequence[str] = ()
    not_checked: Sequence[str] = ()
    queue: QueuePlace | None = None  # None: it waits in none, or none was read
    scaling: ScalingReport | None = None  # of an autoscaler; None: none is known

    @property
    def is_disputed(self) -> bool:
        """Tells whether the scheduler's own message says something else."""
        return bool(self.differences)

    @property
    def is_waiting(self) -> bool:
        """Tells whether the pod starts by itself once other pods end."""
        return self.key in {"no_room", "fragmented", "no_cpu", "no_memory", "too_many_pods", "fits", "queued"}
