"""What a rule is given about one operand on one node, and what it answers. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from kube.log_lines import LineWeight, telling, weight
from wording.numbers import are, count


class Weight(StrEnum):
    WRONG = "wrong"  # somebody has to do something
    WAITING = "waiting"  # it comes by itself, once what it waits for has
    CHOSEN = "chosen"  # somebody wants it so
    UNKNOWN = "unknown"  # it cannot be seen, so that nothing is wrong for all we know


@dataclass(frozen=True)
class Cause:
    """Why an operand does not run. The sentence says what is true, the action what to do about it."""

    key: str
    weight: Weight
    sentence: str
    action: str = ""
    said: str = ""  # the line that tells it, as it was written; blank: no line does


@dataclass(frozen=True)
class Event:
    """An Event of the cluster about the pod or its DaemonSet."""

    reason: str
    message: str


@dataclass(frozen=True)
class PodSigns:
    name: str
    phase: str = ""
    is_ready: bool = False
    is_leaving: bool = False  # it was told to go
    reason: str = ""  # CrashLoopBackOff, ImagePullBackOff, …
    message: str = ""  # what its kubelet adds to that
    status: str = ""  # as kubectl spells it
    container: str = ""  # which of its containers waits or crashed
    last_words: str = ""
    log: Sequence[str] = ()
    events: Sequence[Event] = ()
    image: str = ""
    restarts: int = 0
    is_overdue: bool = False  # it has had more than the time that it takes to come up

    @cached_property
    def telling(self) -> str:
        """The line of its log that says why; without one, of how its container ended. Blank: none was read."""
        return telling(self.log) or self.last_words

    @property
    def told_by_event(self) -> str:
        """What the newest Event says that says more than that its container is tried again. Blank: none does."""
        return next((event.message for event in self.events if event.reason != "BackOff"), "")

    @property
    def of_it(self) -> str:
        """At the beginning of a sentence: which container it is about."""
        return f"Its container {self.container}" if self.container else "A container of it"

    @property
    def is_starting(self) -> bool:
        """Whether its init containers are still at work."""
        return self.phase == "Pending" or self.container.endswith("-validation")

    @property
    def is_coming_up(self) -> bool:
        """Whether it has not crashed and may take longer still."""
        return not self.reason and not self.is_overdue


@dataclass(frozen=True)
class ClaimSigns:
    """A ResourceClaim that a pod names."""

    name: str
    driver: str = ""  # whose devices it wants; blank: its class does not say
    is_allocated: bool = False
    is_published: bool = True  # a ResourceSlice of that driver has devices


@dataclass(frozen=True)
class FreeRoom:
    """What nodes that take pods have free of the resource that a pod asks for."""

    noun: str  # GPU, or the resource's name
    asks: int
    free: int  # over all nodes
    most: int  # on one node
    node: str  # which that is; blank: none has any free
    largest: int  # the most that one node has, free or taken

    def spell(self, number: int) -> str:
        return count(number, self.noun) if self.noun == "GPU" else f"{number} {self.noun}"

    @property
    def free_in_words(self) -> str:
        return f"{self.spell(self.free)} {are(self.free)} free in sum, {self.most} at most on one node"


@dataclass(frozen=True)
class Signs:
    operand: str
    title: str
    node: str
    labels: Mapping[str, str]  # of the node
    taints: Sequence[Mapping[str, str]] = ()  # of the node
    selector: Mapping[str, str] = field(default_factory=dict)  # of the DaemonSet
    affinity: Sequence[Sequence[Mapping[str, Any]]] = ()  # of the DaemonSet's template: its required terms
    tolerations: Sequence[Mapping[str, str]] = ()  # of the DaemonSet's template
    has_daemon_set: bool = True
    others_have_one: bool = False  # without one: whether the cluster has DaemonSets of this operand for other nodes
    runs_version: str = ""  # of the driver, as the node says
    is_driver_off: bool = False  # the ClusterPolicy is told to install none
    has_operator: bool = True  # NVIDIA's GPU Operator acts in this cluster
    driver_asked_by: str = ""  # "ClusterPolicy cluster-policy": what asks for a driver on this node
    daemon_set: str = ""
    daemon_set_events: Sequence[Event] = ()
    unscheduled: str = ""  # why another pod of the DaemonSet was given no node; blank: none waits for one
    pod: PodSigns | None = None
    sees_pods: bool = True  # False: no pod of the cluster was ever seen
    not_ready: Sequence[str] = ()  # titles of the operands this one waits for that are not ready here
    is_held_by_validator: bool = False  # its init container waits for a step of the validator's
    is_gpu_node: bool = True  # somebody sees GPUs of NVIDIA here
    is_of_vendor: bool = False  # somebody sees GPUs of another vendor here
    claims: Sequence[ClaimSigns] = ()  # of a tenant's pod
    room: FreeRoom | None = None  # for a tenant's pod without a node
    is_placed: bool = True  # False: it has no node
    behind: Cause | None = None  # why the operand that a tenant's pod waits for does not do its part
    is_node_ready: bool | None = True  # None: the kubelet stopped reporting
    node_says: str = ""  # why it is not ready
    kernel: str = ""
    os_image: str = ""
    runtime: str = ""  # containerd://1.7.24
    mig_config: str = ""
    mig_state: str = ""
    slice_devices: int | None = None  # of this operand's DRA driver, in the node's ResourceSlices; None: no slice
    sees_slices: bool = True  # False: no ResourceSlice of the cluster was ever listed
    has_dra: bool = False  # a DRA driver offers GPUs of this node
    gpus_expected: int = 0  # devices of any kind that were ever there
    gpus_allocatable: int = 0

    @property
    def has_host_driver(self) -> bool:
        """Whether no driver pod is expected here: the driver is the host's."""
        return self.is_driver_off or self.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED

    def advice(self, operated: str, alone: str) -> str:
        """What to do, where the GPU Operator made the operand and where nobody's operator did."""
        return operated if self.has_operator else alone

    def everything_said(self) -> Iterator[str]:
        """Every line about the pod, the one that tells most first."""
        if self.pod is None:
            return
        yield from reversed(self.pod.log)
        yield from (line for line in (self.pod.last_words, self.pod.message) if line)
        yield from (event.message for event in self.pod.events)


CauseRule = Callable[[Signs], Cause | None]


@dataclass(frozen=True)
class Saying:
    """A rule that knows a cause by what is said: a line of a log, a termination message, or an Event.

    What its pattern names, sentence and action may use: `(?P<module>…)`, {module}.
    """

    key: str
    pattern: re.Pattern[str]
    sentence: str
    action: str
    operands: frozenset[str] = frozenset()  # empty: any
    weight: Weight = Weight.WRONG
    is_normal_at_first: bool = False  # while a pod is coming up, it is said where all goes well, too
    is_told_as_trouble: bool = False  # a line that is only for information does not count
    alone: str = ""  # what to do where no operator runs; blank: the same

    def __call__(self, signs: Signs) -> Cause | None:
        if self.operands and signs.operand not in self.operands:
            return None
        if self.is_normal_at_first and signs.pod is not None and signs.pod.is_coming_up:
            return None
        lines = (
            line for line in signs.everything_said() if not self.is_told_as_trouble or weight(line) >= LineWeight.WORDED
        )
        said = next((found for line in lines if (found := self.pattern.search(line))), None)
        if said is None:
            return None
        facts = {"node": signs.node, "kernel": signs.kernel or "of this node", "os": signs.os_image or "its system"}
        facts["runtime"] = signs.runtime.partition(":")[0] or "the container runtime"
        facts |= {name: text or "" for name, text in said.groupdict().items()}
        action = signs.advice(self.action, self.alone or self.action)
        sentence = self.sentence.format(**facts)
        if sentence.startswith("the "):  # a runtime that nobody names
            sentence = f"T{sentence[1:]}"
        return Cause(self.key, self.weight, sentence, action.format(**facts), said.string.strip())


def words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)
