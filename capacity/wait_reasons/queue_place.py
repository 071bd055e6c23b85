"""The place of a pod's workload in a queue in front of the scheduler. Pure.

Reasons and messages of Kueue: kubernetes-sigs/kueue@ff69552e79, apis/kueue/v1beta2/workload_types.go and
pkg/scheduler/flavorassigner.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

STRICT = "StrictFIFO"
# Reasons of Kueue for which waiting does not help, and parts of its messages where it gives no such reason.
NEVER_FITS = frozenset({"ExceedsMaxQuota", "Misconfigured", "NoMatchingFlavor", "Suspended"})
NEVER_FITS_TEXTS = (
    "maximum capacity",
    "doesn't exist",
    "is inactive",
    "is stopped",
    "does not provide resource",
    "unavailable in ClusterQueue",
)
UNCOVERED = re.compile(r"resource (\S{1,200}) unavailable in ClusterQueue")  # it is in no resource group
TOO_LARGE = ("ExceedsMaxQuota", "maximum capacity")


@dataclass(frozen=True)
class QueueQuota:
    """A quota of the queue for a resource that the workload requests. Amounts are whole numbers."""

    flavor: str
    resource: str
    nominal: int
    reserved: int
    borrowed: int = 0

    @property
    def free(self) -> int:
        return max(0, self.nominal - self.reserved)

    @property
    def text(self) -> str:
        borrowed = f", {self.borrowed} of them borrowed" if self.borrowed else ""
        return f"{self.reserved} of {self.nominal} {self.resource} reserved in flavor {self.flavor}{borrowed}"


@dataclass(frozen=True)
class QueuePlace:
    """The place of a pod's workload in its queue, as last observed."""

    system: str  # Kueue, Volcano, KAI
    workload: str  # namespace/name of the Workload or PodGroup
    queue: str  # the LocalQueue of Kueue
    cluster_queue: str = ""  # blank: another system, or no such LocalQueue is observed
    is_active: bool = True
    is_waiting: bool = True
    is_reserved: bool = False  # Kueue has reserved quota for it, and waits for admission checks
    members: int = 0  # pods that start together
    reason: str = ""
    message: str = ""  # in the queue's own words
    position: int | None = None  # 1 is the next; by priority and age
    length: int = 0  # waiting workloads of the ClusterQueue
    head: str = ""  # the first workload of a strict queue, if it is another one
    trouble: str = ""  # why the queue admits nothing
    quotas: Sequence[QueueQuota] = ()

    @property
    def name(self) -> str:
        if self.system != "Kueue":
            return f"queue {self.queue or 'default'} of {self.system}"
        return f"ClusterQueue {self.cluster_queue}" if self.cluster_queue else f"LocalQueue {self.queue}"

    @property
    def is_too_large(self) -> bool:
        """Tells whether it requests more than the queue can ever give."""
        return self.reason in TOO_LARGE or any(text in self.message for text in TOO_LARGE)

    @property
    def uncovered(self) -> list[str]:
        """Returns the resources that the workload requests and the queue has no quota for."""
        return list(dict.fromkeys(UNCOVERED.findall(self.message)))

    @property
    def is_stuck(self) -> bool:
        """Tells whether waiting does not help."""
        told = self.reason in NEVER_FITS or any(text in self.message for text in NEVER_FITS_TEXTS)
        return not self.is_active or bool(self.trouble) or told
