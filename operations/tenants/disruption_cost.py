"""The cost of disrupting a node in GPU-hours of whole jobs, and the order of nodes by it. Pure.

One pod of a gang ends the whole job (Z14), and all its work since its pods started counts as lost, since checkpoints
are unknown. The number is therefore an upper bound, useful for comparison. Pods of a service restart and lose nothing.
The time until pods are Ready again, with idle GPUs, is a cost too (Z16) and is stated separately.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wording.lists import names
from wording.numbers import are, count, either, every_one_of


@dataclass(frozen=True)
class Job:
    """Pods that end together."""

    name: str  # "PyTorchJob team-a/llama"
    gpus: int
    gpu_hours: float  # GPU-hours of all its pods in the cluster, since each started
    nodes: int
    uncounted: int = 0  # pods with parts of GPUs, or with GPUs by a claim: in neither number
    loading_gpu_hours: float = 0.0  # until all its pods are Ready again, as far as they tell
    does_nothing: bool = False  # every GPU that it has is seen to be idle

    @property
    def harm_gpu_hours(self) -> float:
        return self.gpu_hours + self.loading_gpu_hours

    def __str__(self) -> str:
        gpus = [count(self.gpus, "GPU")] if self.gpus or not self.uncounted else []
        parts = [with_parts(self.uncounted)] if self.uncounted else []
        return f"{self.name} ({' and '.join([*gpus, *parts])} on {count(self.nodes, 'node')})"


@dataclass(frozen=True)
class Harm:
    """The cost of one node now."""

    jobs: tuple[Job, ...] = ()  # jobs with a pod here, the costliest first
    restarts: int = 0  # pods of services: each starts again elsewhere, and no work of theirs is lost
    pods: int = 0  # pods of tenants on the node, including those of jobs
    gpus_free: int = 0  # unused GPUs: of nodes with a similar cost, the one with more goes first
    services_loading_gpu_hours: float = 0.0  # until the pods of services are Ready again, as far as they tell
    pods_idle: int = 0  # part of `pods` that is idle on its GPUs
    is_known: bool = True  # False: its pods were never read

    @property
    def gpu_hours(self) -> float:
        return sum(job.gpu_hours for job in self.jobs)

    @property
    def loading_gpu_hours(self) -> float:
        return self.services_loading_gpu_hours + sum(job.loading_gpu_hours for job in self.jobs)

    @property
    def ends_no_work(self) -> bool:
        """Returns whether the node has pods, all idle, and the jobs that would end are idle as well."""
        return 0 < self.pods == self.pods_idle and all(job.does_nothing for job in self.jobs)

    @property
    def uncounted(self) -> int:
        return sum(job.uncounted for job in self.jobs)

    @property
    def sentence(self) -> str:
        if not self.is_known:
            return "Unknown: its pods were never read."
        if not self.pods:
            return "Idle."
        lost = f": {gpu_hours_at_most(self.gpu_hours, uncounted=self.uncounted)}"
        ends = [f"Ends {names([str(job) for job in self.jobs])}{lost}."] if self.jobs else []
        restarts = [f"Restarts {of_services(self.restarts)}."] if self.restarts else []
        loads = [f"{hours(self.loading_gpu_hours)} until Ready again."] if takes_time(self.loading_gpu_hours) else []
        idle = ["Its GPUs are allocated and idle."] if self.ends_no_work else []
        return " ".join([*ends, *restarts, *loads, *idle])


UNHARMED = Harm()
UNKNOWN = Harm(is_known=False)


def hours(number: float) -> str:
    """Returns text such as "340 GPU-hours"; with one decimal below ten."""
    shown = f"{number:,.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")
    return f"{shown} GPU-{'hour' if shown == '1' else 'hours'}"


def with_parts(pods: int) -> str:
    return f"{count(pods, 'pod')} with slices, shares or claims"


def gpu_hours_at_most(gpu_hours: float, *, uncounted: int) -> str:
    if not uncounted:
        return f"{hours(gpu_hours)} at most"
    if not gpu_hours:
        return f"an unknown number of GPU-hours, of {with_parts(uncounted)}"
    return f"{hours(gpu_hours)} at most, without {with_parts(uncounted)}"


def of_services(pods: int) -> str:
    return f"{count(pods, 'pod')} of {either(pods, 'a service', 'services')}"


def takes_time(gpu_hours: float) -> bool:
    return gpu_hours >= 0.1


def loading(harms: Sequence[Harm]) -> float:
    """Returns the GPU-hours until the pods of these nodes are Ready again, each job once."""
    jobs = {job.name: job.loading_gpu_hours for harm in harms for job in harm.jobs}
    return sum(jobs.values()) + sum(harm.services_loading_gpu_hours for harm in harms)


def total(harms: Sequence[Harm]) -> float:
    """Returns the GPU-hours of these nodes; a job on several nodes counts once."""
    jobs = {job.name: job.gpu_hours for harm in harms for job in harm.jobs}
    return sum(jobs.values())


def uncounted(harms: Sequence[Harm]) -> int:
    """Returns the number of pods without known GPU-hours, those of a job once."""
    jobs = {job.name: job.uncounted for harm in harms for job in harm.jobs}
    return sum(jobs.values())


def costs(harms: Sequence[Harm]) -> str:
    """Returns text on the total cost of these nodes; empty if it is zero."""
    if not harms:
        return ""
    if not all(harm.is_known for harm in harms):
        return "The cost is unknown, because pods there were never read."
    idle = sum(not harm.pods for harm in harms)
    if idle == len(harms):
        return f"No tenant loses work: {every_one_of(idle, 'node')} {are(idle)} idle."
    ended = len({job.name for harm in harms for job in harm.jobs})
    restarts = sum(harm.restarts for harm in harms)
    loads = loading(harms)
    ready = f", and {hours(loads)} until Ready again" if takes_time(loads) else ""
    pods = [
        f"{count(ended, 'job')} {either(ended, 'ends', 'end')}",
        *([f"{of_services(restarts)} {either(restarts, 'restarts', 'restart')}"] if restarts else []),
        f"{idle} of {count(len(harms), 'node')} {are(idle)} idle",
    ]
    return f"Costs {gpu_hours_at_most(total(harms), uncounted=uncounted(harms))}{ready}: {', '.join(pods)}."


@dataclass
class _Left:
    """The remaining cost of nodes once some jobs are lost."""

    cost: dict[str, float]
    on: Mapping[str, Sequence[str]]  # job's name → keys of the nodes it is on
    lost: set[str] = field(default_factory=set)

    def lose(self, job: Job) -> Sequence[str]:
        """Returns the nodes that cost less once the job is lost."""
        if job.name in self.lost:
            return ()
        self.lost.add(job.name)
        for key in self.on[job.name]:
            self.cost[key] = max(0.0, self.cost[key] - job.harm_gpu_hours)
        return self.on[job.name]


def order_by_disruption(harms: Mapping[str, Harm]) -> list[str]:
    """Returns the keys in order of least disruption; equal ones keep their order.

    Idle nodes come first, then nodes with idle pods, then by GPU-hours beyond those already lost, so that the nodes of
    one job follow each other. Costs are compared by powers of two; among similar costs the node with more free GPUs
    comes first, since its free GPUs are stranded.
    """
    place = {key: number for number, key in enumerate(harms)}
    on: dict[str, list[str]] = defaultdict(list)
    for key, harm in harms.items():
        for job in harm.jobs:
            on[job.name].append(key)
    left = _Left({key: harm.gpu_hours + harm.loading_gpu_hours for key, harm in harms.items()}, on)
    follows: set[str] = set()  # nodes of a job that is lost already: before any that is not

    def rank(key: str) -> tuple[bool, bool, int, int, int, float, int, int, str]:
        harm, cost = harms[key], left.cost[key]
        order = (_work_on(harm), _doublings(cost), -harm.gpus_free, cost, harm.restarts, place[key], key)
        return bool(harm.pods), key not in follows, *order

    waiting = [rank(key) for key in harms]
    heapq.heapify(waiting)
    found: list[str] = []
    gone: set[str] = set()
    while waiting:
        ranked = heapq.heappop(waiting)
        key = ranked[-1]
        if key in gone or ranked != rank(key):
            continue  # a cheaper entry replaced it
        gone.add(key)
        found.append(key)
        for job in harms[key].jobs:
            for cheaper in left.lose(job):
                if cheaper not in gone:
                    follows.add(cheaper)
                    heapq.heappush(waiting, rank(cheaper))
    return found


def least_harm(harm: Harm) -> tuple[int, float, int]:
    return _work_on(harm), harm.gpu_hours + harm.loading_gpu_hours, harm.restarts


def _work_on(harm: Harm) -> int:
    """Returns 0 without pods, 1 with idle pods, 2 with work or unknown."""
    if not harm.pods:
        return 0
    return 1 if harm.ends_no_work else 2


def _doublings(cost: float) -> int:
    """Returns the power of two of a cost from 1 GPU-hour on; 0 below."""
    return math.frexp(cost)[1] if cost >= 1 else 0
