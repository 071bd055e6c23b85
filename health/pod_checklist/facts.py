"""The facts that the checklist of a pod is answered from. Missing facts are None or empty, and have a reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fleet.models import ClusterEvent, Node, Pod
from fleet.states.pod import ENDED
from health.stack import NodeStack
from health.stack.causes import Cause


@dataclass(frozen=True)
class CountedXids:
    """The number of events in the pod's time. `number` None: not exported, or not recorded."""

    number: int | None = None
    last_at: datetime | None = None
    covered: float = 0.0  # share of the pod's time with telemetry, 0 to 1


@dataclass(frozen=True)
class GpuFault:
    """A finding about a GPU in the pod's time."""

    title: str
    at: datetime
    is_memory_error: bool  # ECC or row remapping
    is_xid: bool


@dataclass(frozen=True)
class PodGpu:
    name: str  # GPU 3
    uuid: str
    profile: str = ""  # of the pod's MIG slice; blank: the whole GPU
    neighbours: Sequence[str] = ()  # other pods on it, with their requests
    memory_used_mib: float | None = None  # of the whole GPU; None: no fresh telemetry
    memory_mib: int | None = None
    xids: CountedXids = field(default_factory=CountedXids)
    ecc_uncorrected: float | None = None  # since the driver was loaded; None: not exported
    faults: Sequence[GpuFault] = ()

    @property
    def memory_in_use(self) -> str:
        """Returns "61.2 of 80 GiB"; blank if unknown."""
        if self.memory_used_mib is None or not self.memory_mib:
            return ""
        return f"{self.memory_used_mib / 1024:.1f} of {self.memory_mib / 1024:.0f} GiB"

    @property
    def is_exclusive(self) -> bool:
        return not self.neighbours


@dataclass(frozen=True)
class PodCheckFacts:
    pod: Pod
    now: datetime
    asks: str = ""  # its requests as text
    seen_at: datetime | None = None  # last update of the pods of its cluster; None: never
    node_seen_at: datetime | None = None
    node: Node | None = None
    stack: NodeStack | None = None  # None: it has no node
    cause: Cause | None = None  # why it does not run
    ended_cause: Cause | None = None  # of the last failed end, by its last words
    warnings: Sequence[ClusterEvent] = ()  # of its kubelet, the newest first
    events_gap: str = ""  # why Events are not checked; blank: they are
    unallocated_claims: Sequence[str] = ()
    missing_claims: Sequence[str] = ()  # not observed
    gpus: Sequence[PodGpu] = ()
    unplaced: bool = False  # it has GPUs that no source identifies
    is_shared: bool = False  # its resource is shared by pods
    sharers: Sequence[str] = ()  # other pods with shared GPUs of its node
    telemetry_gap: str = ""  # why telemetry of its GPUs is missing; blank: it is there
    sampled_at: datetime | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        return self.pod.container_settings

    @property
    def ended(self) -> Mapping[str, Any]:
        """Returns the last failed end of a container; empty if none is reported."""
        found: Mapping[str, Any] = self.settings.get("ended", {})
        return found

    @property
    def ended_at(self) -> datetime | None:
        return datetime.fromisoformat(self.ended["at"]) if self.ended else None

    @property
    def words(self) -> str:
        """Returns the last words of a container."""
        return self.pod.last_words or self.ended.get("words", "")

    @property
    def since(self) -> datetime:
        return self.pod.started_at or self.pod.created_at

    @property
    def lasts(self) -> timedelta:
        return max(timedelta(), self.now - self.since)

    @property
    def is_over(self) -> bool:
        return self.pod.phase in ENDED
