"""The signs of an operand or a pod on a node, and the cause that a rule returns. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from itertools import accumulate
from typing import Any

from gpu.labels import DEPLOY_DRIVER, PRE_INSTALLED
from gpu.operands import AMD_DRA, DRA_DRIVER, INTEL_DRA
from kube.line_patterns import LINE_READ
from kube.log_lines import LineWeight, decisive_line, is_echo, is_informational, weight
from wording.numbers import count

PUBLISHES = {DRA_DRIVER: "gpu.nvidia.com", AMD_DRA: "gpu.amd.com", INTEL_DRA: "gpu.intel.com"}
DRIVERS = {driver: operand for operand, driver in PUBLISHES.items()}  # by the name in claims
READ_AT_MOST = 10_000  # characters about one pod: a stored log has 4096, its end and its status 500 each
CC_MODE, CC_STATE = "nvidia.com/cc.mode", "nvidia.com/cc.mode.state"
VGPU_CONFIG, VGPU_STATE = "nvidia.com/vgpu.config", "nvidia.com/vgpu.config.state"
CRASHES = frozenset({"CrashLoopBackOff", "Error", "ContainerCannotRun", "RunContainerError", "StartError"})
# Reasons of Events that stop no pod: a repeated try, an end by a probe, which has a cause of its own, servers of the
# node's resolv.conf that are left out for each pod of the node, for ever, a system without noswap, a sandbox that is
# made anew, and a probe that passes with a warning. kubernetes, pkg/kubelet/events/event.go.
SAYS_NOTHING = frozenset({
    "BackOff", "DNSConfigForming", "Killing", "PossibleMemoryBackedVolumesOnDisk", "SandboxChanged", "ProbeWarning",
})  # fmt: skip
# A container that ends with one of these never ran. The runtime's error is its termination message; it has no log.
NEVER_RAN = ("StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError")


class Weight(StrEnum):
    WRONG = "wrong"  # somebody has to do something
    WAITING = "waiting"  # starts by itself once its dependency is ready
    CHOSEN = "chosen"  # somebody wants it so
    UNKNOWN = "unknown"  # the pod cannot be observed, so no fault is known


@dataclass(frozen=True)
class Cause:
    """The cause why an operand or a pod does not run."""

    key: str
    weight: Weight
    title: str
    summary: str = ""
    steps: tuple[str, ...] = ()
    quote: str = ""  # the line that shows it, as it was written; blank: none does
    said: str = ""  # message of the quoted line, if no known cause is more exact

    @property
    def trouble(self) -> str:
        """Returns the cause in a few words."""
        return f"{self.title}: {self.said}" if self.said else self.title

    @property
    def sentence(self) -> str:
        return f"{self.title.rstrip('.')}. {self.summary}".strip()

    @property
    def action(self) -> str:
        return " ".join([*(f"{step.rstrip('.')}." for step in self.steps[:-1]), *self.steps[-1:]])


@dataclass(frozen=True)
class Event:
    """An Event of the cluster about the pod or its DaemonSet."""

    reason: str
    message: str
    last_at: datetime | None = field(default=None, compare=False, repr=False)  # pods that differ in it are alike


@dataclass(frozen=True)
class PodSigns:
    name: str
    phase: str = ""
    is_ready: bool = False
    is_leaving: bool = False  # its pod is being deleted
    reason: str = ""  # CrashLoopBackOff, ImagePullBackOff, …
    message: str = ""  # the kubelet's message about it
    status: str = ""  # as kubectl spells it
    container: str = ""  # which of its containers waits or crashed
    last_words: str = ""
    more_words: Sequence[str] = ()  # further lines of its log, the best first
    log: Sequence[str] = ()
    is_log_of_ready: bool = False  # the log was read since it is ready, and lately: a finding misses its work
    events: Sequence[Event] = ()
    image: str = ""
    restarts: int = 0
    is_overdue: bool = False  # the usual start time has passed
    memory_limit_bytes: int | None = None  # of the container that failed; 0: it has no limit, None: unknown
    had_ended_well: bool = False  # the kubelet refused the pod after all its containers had ended with 0

    @cached_property
    def decisive_line(self) -> str:
        """The line of its log that says why; without one, of how its container ended. Blank: none was read."""
        return decisive_line(self.log) or self.last_words

    @cached_property
    def telling_lines(self) -> tuple[str, ...]:
        """The lines of its log that may tell the cause, the newest first.

        A traced command is none. Where a program that ended wrote errors, neither is what it calls information.
        """
        lines = [line for line in reversed(self.log) if not is_echo(line)]
        if self.is_ready or weight(self.decisive_line) < LineWeight.ERROR:
            return tuple(lines)
        return tuple(line for line in lines if not is_informational(line))

    @property
    def event(self) -> Event | None:
        """The newest Event that says more than a repeated try."""
        return next((event for event in self.events if event.message and event.reason not in SAYS_NOTHING), None)

    @property
    def unhealthy(self) -> str:
        """The answer of a probe in the newest such Event; blank: there is none."""
        return next((event.message for event in self.events if event.reason == "Unhealthy"), "")

    @property
    def own_words(self) -> str:
        """Returns the pod's own report: its termination message, else reason and message."""
        return self.last_words or (self.message and ": ".join(filter(None, (self.reason, self.message))))

    @property
    def has_no_log(self) -> bool:
        """Returns whether the container never ran, so that `kubectl logs` is empty, with `--previous` or without."""
        reasons = (self.reason, self.status.removeprefix("Init:"))
        is_named = any(f"ended with {reason}" in self.message for reason in NEVER_RAN)
        return is_named or any(reason in NEVER_RAN for reason in reasons)

    @property
    def may_have_log(self) -> bool:
        """Returns whether a container of the pod may have written something."""
        is_new = self.phase == "Pending" and not (self.restarts or self.log or self.last_words or self.container)
        return not (self.has_no_log or is_new)

    @property
    def is_starting(self) -> bool:
        """Returns whether init containers still run."""
        return self.phase == "Pending" or self.container.endswith("-validation")

    @property
    def is_coming_up(self) -> bool:
        """Returns whether the pod has not ended or crashed and may need more time."""
        return self.phase in ("Pending", "Running") and not self.reason and not self.is_overdue


@dataclass(frozen=True)
class ClaimSigns:
    name: str
    driver: str = ""  # driver of the requested devices; blank: unknown
    is_allocated: bool = False
    is_published: bool = True  # a ResourceSlice of that driver has devices


@dataclass(frozen=True)
class FreeRoom:
    """The free amount of a pod's resource on nodes that accept pods."""

    noun: str  # GPU, or the resource's name
    asks: int
    free: int  # over all nodes
    most: int  # on one node
    node: str  # which that is; blank: none has any free
    largest: int  # the most that one node has, free or taken

    def spell(self, number: int) -> str:
        return count(number, self.noun) if self.noun == "GPU" else f"{number} {self.noun}"


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
    runs_version: str = ""  # driver version that the node reports
    is_driver_off: bool = False  # the ClusterPolicy installs no driver
    has_operator: bool = True  # NVIDIA's GPU Operator acts in this cluster
    driver_asked_by: str = ""  # object that requests a driver on this node, such as "ClusterPolicy cluster-policy"
    daemon_set: str = ""
    daemon_set_events: Sequence[Event] = ()
    unscheduled: str = ""  # why another pod of the DaemonSet was given no node; blank: none waits for one
    pod: PodSigns | None = None
    sees_pods: bool = True  # False: no pod of the cluster was ever seen
    not_ready: Sequence[str] = ()  # titles of the operands this one waits for that are not ready here
    is_held_by_validator: bool = False  # its init container waits for a step of the validator
    is_gpu_node: bool = True  # somebody sees GPUs of NVIDIA here
    is_of_vendor: bool = False  # somebody sees GPUs of another vendor here
    vendor: str = ""  # that other vendor (`Vendor`); blank: it has no name here
    claims: Sequence[ClaimSigns] = ()  # of a tenant's pod
    room: FreeRoom | None = None  # for a tenant's pod without a node
    asks: Sequence[
        str
    ] = ()  # extended resources of the container that failed, or of a pod without a node; drivers, too
    is_placed: bool = True  # False: it has no node
    behind: Cause | None = None  # why the operand that a tenant's pod waits for does not do its part
    is_node_ready: bool | None = True  # None: the kubelet stopped reporting
    not_ready_message: str = ""  # why it is not ready
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
    is_of_program: bool = False  # only the program's own lines count, not what the kubelet says of its container

    @property
    def has_host_driver(self) -> bool:
        """Returns whether no driver pod is expected, since the driver is the host's."""
        return self.is_driver_off or self.labels.get(DEPLOY_DRIVER) == PRE_INSTALLED

    def all_lines(self) -> Sequence[str]:
        """Every line about the pod, the one that tells most first. No more than `READ_AT_MOST` characters."""
        return self._lines

    @cached_property
    def _lines(self) -> Sequence[str]:
        if self.pod is None:
            return ()
        of_end = (self.pod.last_words, "" if self.is_of_program else self.pod.message)
        events = dict.fromkeys(event.message for event in self.pod.events)
        lines = (*self.pod.telling_lines, *filter(None, of_end), *events)
        read = accumulate(min(len(line), LINE_READ) for line in lines)
        return tuple(line for line, so_far in zip(lines, read, strict=True) if so_far <= READ_AT_MOST)


CauseRule = Callable[[Signs], Cause | None]
