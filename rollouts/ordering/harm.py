"""What a node takes with it when its driver changes: GPU-hours of whole jobs, and who goes first by that. Pure.

One pod of a gang ends the whole job (hazard Z14), and everything it has done since its pods started is counted as
lost: nobody tells us of checkpoints. So the number is the most that is lost, and good for comparing nodes.
"""

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wording.lists import names
from wording.numbers import are, count, either, every


@dataclass(frozen=True)
class Job:
    """Pods that fall together."""

    name: str  # "PyTorchJob team-a/llama"
    gpus: int
    gpu_hours: float  # of all its pods, wherever they run, since each started
    nodes: int
    uncounted: int = 0  # of its pods, those that have parts of GPUs, or GPUs by a claim: theirs are in neither number

    def __str__(self) -> str:
        gpus = [count(self.gpus, "GPU")] if self.gpus or not self.uncounted else []
        parts = [with_parts(self.uncounted)] if self.uncounted else []
        return f"{self.name} ({' and '.join([*gpus, *parts])} on {count(self.nodes, 'node')})"


@dataclass(frozen=True)
class Harm:
    """Of one node, as things are now."""

    jobs: tuple[Job, ...] = ()  # those with a pod here, the costliest first
    alone_gpu_hours: float = 0.0  # of pods that nobody else falls with
    alone_uncounted: int = 0  # of these, such as have parts of GPUs, or GPUs by a claim
    pods: int = 0  # tenants' pods on it, those of jobs included
    gpus_free: int = 0  # that nobody has: of equals, the node with more of them goes first
    is_known: bool = True  # False: its pods were never read

    @property
    def gpu_hours(self) -> float:
        return self.alone_gpu_hours + sum(job.gpu_hours for job in self.jobs)

    @property
    def uncounted(self) -> int:
        return self.alone_uncounted + sum(job.uncounted for job in self.jobs)

    @property
    def sentence(self) -> str:
        """Why it stands where it stands, for a person."""
        if not self.is_known:
            return "Nobody knows: its pods were never read."
        if not self.pods:
            return "Idle."
        cost = at_most(self.gpu_hours, uncounted=self.uncounted)
        if not self.jobs:
            return f"{count(self.pods, 'GPU pod')}: {cost}."
        return f"Ends {names([str(job) for job in self.jobs])}: {cost}."


UNHARMED = Harm()
UNKNOWN = Harm(is_known=False)


def hours(number: float) -> str:
    """ "340 GPU-hours"; to a tenth where it is less than ten."""
    shown = f"{number:,.0f}" if number >= 10 else f"{number:.1f}".removesuffix(".0")
    return f"{shown} GPU-{'hour' if shown == '1' else 'hours'}"


def with_parts(pods: int) -> str:
    """Of which nothing says how much of a GPU they have."""
    return f"{count(pods, 'pod')} with slices, shares or claims"


def at_most(gpu_hours: float, *, uncounted: int) -> str:
    if not uncounted:
        return f"{hours(gpu_hours)} at most"
    if not gpu_hours:
        return f"GPU-hours that nobody counts, of {with_parts(uncounted)}"
    return f"{hours(gpu_hours)} at most, those of {with_parts(uncounted)} not counted"


def total(harms: Sequence[Harm]) -> float:
    """GPU-hours of several nodes: a job that is on more than one of them is lost once."""
    jobs = {job.name: job.gpu_hours for harm in harms for job in harm.jobs}
    return sum(jobs.values()) + sum(harm.alone_gpu_hours for harm in harms)


def uncounted(harms: Sequence[Harm]) -> int:
    """Pods whose GPU-hours are not in that total: those of a job once."""
    jobs = {job.name: job.uncounted for harm in harms for job in harm.jobs}
    return sum(jobs.values()) + sum(harm.alone_uncounted for harm in harms)


def costs(harms: Sequence[Harm]) -> str:
    """What several nodes cost together, for a person. Blank: there are none."""
    if not harms:
        return ""
    if not all(harm.is_known for harm in harms):
        return "What it costs nobody knows: pods there were never read."
    idle = sum(not harm.pods for harm in harms)
    if idle == len(harms):
        return f"Costs nobody any work: {every(idle, 'node')} {are(idle)} idle."
    ended = len({job.name for harm in harms for job in harm.jobs})
    jobs = f"{count(ended, 'job')} {either(ended, 'ends', 'end')}"
    cost = at_most(total(harms), uncounted=uncounted(harms))
    return f"Costs {cost}: {jobs}, {idle} of {count(len(harms), 'node')} {are(idle)} idle."


@dataclass
class _Left:
    """What nodes still cost, once some jobs are lost."""

    cost: dict[str, float]
    on: Mapping[str, Sequence[str]]  # job's name → keys of the nodes it is on
    lost: set[str] = field(default_factory=set)

    def lose(self, job: Job) -> Sequence[str]:
        """The nodes that cost less from now on."""
        if job.name in self.lost:
            return ()
        self.lost.add(job.name)
        for key in self.on[job.name]:
            self.cost[key] = max(0.0, self.cost[key] - job.gpu_hours)
        return self.on[job.name]


def least_first(harms: Mapping[str, Harm]) -> list[str]:
    """Keys in the order of least harm; those that harm as much stay in the order in which they come.

    Idle nodes, then whoever costs fewest GPU-hours more than what is lost by then: so the nodes of one job follow
    each other, and the job is disrupted once.
    """
    place = {key: number for number, key in enumerate(harms)}
    on: dict[str, list[str]] = defaultdict(list)
    for key, harm in harms.items():
        for job in harm.jobs:
            on[job.name].append(key)
    left = _Left({key: harm.gpu_hours for key, harm in harms.items()}, on)
    follows: set[str] = set()  # nodes of a job that is lost already: before any that is not

    def rank(key: str) -> tuple[bool, bool, float, int, int, str]:
        harm = harms[key]
        return bool(harm.pods), key not in follows, left.cost[key], -harm.gpus_free, place[key], key

    waiting = [rank(key) for key in harms]
    heapq.heapify(waiting)
    found: list[str] = []
    gone: set[str] = set()
    while waiting:
        ranked = heapq.heappop(waiting)
        key = ranked[-1]
        if key in gone or ranked != rank(key):
            continue  # it was put in again when it became cheaper
        gone.add(key)
        found.append(key)
        for job in harms[key].jobs:
            for cheaper in left.lose(job):
                if cheaper not in gone:
                    follows.add(cheaper)
                    heapq.heappush(waiting, rank(cheaper))
    return found
