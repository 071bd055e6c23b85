"""The pods of a node that a drain evicts, waits for, or leaves alone. Pure.

As kubectl drain: pods of DaemonSets and static pods stay, and pods without a controller or with an emptyDir volume need
a person's consent (kubernetes, staging/src/k8s.io/kubectl/pkg/drain/filters.go).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpu.evictions import REPLICAS

JOBS = 2  # the last turn
STUCK_AFTER = timedelta(minutes=2)  # after its grace period
ENDED = ("Succeeded", "Failed")
LEFT_ALONE = {"DaemonSet": "a DaemonSet's pod", "Node": "a static pod"}  # kinds of owners


@dataclass(frozen=True)
class PodOnNode:
    uid: str
    namespace: str
    name: str
    owner_kind: str = ""  # blank: no controller
    owner: str = ""
    phase: str = "Running"
    has_empty_dir: bool = False
    ends_at: datetime | None = None  # end of its grace period; None: it is not being deleted
    contact: str = ""  # whom its owner names; blank: nobody
    has_gpus: bool = False

    @property
    def title(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def turn(self) -> int:
        """Returns its place in a drain: services without GPUs, inference, then work that cannot go on elsewhere."""
        return (1 if self.has_gpus else 0) if self.owner_kind in REPLICAS else JOBS

    @property
    def job(self) -> str:
        return f"{self.owner_kind}/{self.owner}" if self.owner_kind else ""


@dataclass(frozen=True)
class Consent:
    """The losses that a person agreed to."""

    unmanaged: bool = False  # pods without a controller: nothing starts them again
    empty_dir: bool = False  # data in emptyDir volumes


@dataclass(frozen=True)
class Evictions:
    to_evict: tuple[PodOnNode, ...]
    terminating: tuple[PodOnNode, ...]
    stuck: tuple[PodOnNode, ...]  # beyond their grace period
    needs_consent: tuple[tuple[PodOnNode, str], ...]  # with the reason
    left_alone: tuple[tuple[PodOnNode, str], ...]

    @property
    def is_empty(self) -> bool:
        """Returns whether no pod is left that the drain removes."""
        return not (self.to_evict or self.terminating or self.stuck or self.needs_consent)


def evictions_of(pods: Iterable[PodOnNode], consent: Consent, *, now: datetime) -> Evictions:
    """Returns each pod in one list. Pods of one controller are together, so that a whole job ends at once.

    Jobs are last (lifecycle R26).
    """
    to_evict: list[PodOnNode] = []
    terminating: list[PodOnNode] = []
    stuck: list[PodOnNode] = []
    needs_consent: list[tuple[PodOnNode, str]] = []
    left_alone: list[tuple[PodOnNode, str]] = []
    for pod in sorted(pods, key=lambda pod: (pod.turn, pod.namespace, pod.owner_kind, pod.owner, pod.name)):
        if pod.owner_kind in LEFT_ALONE:
            left_alone.append((pod, LEFT_ALONE[pod.owner_kind]))
        elif pod.ends_at is not None:
            (stuck if now - pod.ends_at > STUCK_AFTER else terminating).append(pod)
        elif pod.phase in ENDED:
            left_alone.append((pod, "ended"))
        elif lacking := _lacking(pod, consent):
            needs_consent.append((pod, lacking))
        else:
            to_evict.append(pod)
    return Evictions(tuple(to_evict), tuple(terminating), tuple(stuck), tuple(needs_consent), tuple(left_alone))


def next_turn(pods: Sequence[PodOnNode]) -> Sequence[PodOnNode]:
    """Returns the pods of the first turn. Nothing later is ended while a service cannot leave: its drain may be given
    up."""
    first = min((pod.turn for pod in pods), default=JOBS)
    return [pod for pod in pods if pod.turn == first]


def _lacking(pod: PodOnNode, consent: Consent) -> str:
    """Returns why a person must agree first; empty if nobody must."""
    if not pod.owner_kind and not consent.unmanaged:
        return "no controller starts the pod again"
    return "the pod's emptyDir data is lost" if pod.has_empty_dir and not consent.empty_dir else ""
