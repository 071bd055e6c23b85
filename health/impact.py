"""The impact of a finding: the pods with GPUs on its node. Pure: no Django, no I/O, the same for page and REST."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from wording.instants import to_the_minute, to_the_second
from wording.numbers import count, either

NAMED = 5  # number of pods that are named


@dataclass(frozen=True)
class AllocatedPod:
    """A pod that is not done and asks for GPUs."""

    namespace: str
    name: str
    owner: str = ""  # its controller, such as Job/train; blank: none
    gpus: int = 0  # whole ones; 0: slices, shares or a claim
    boards: frozenset[int | str] = frozenset()  # known GPUs of the pod: numbers, else UUIDs
    has_unplaced: bool = False  # the pod has more GPUs, whose numbers are unknown

    @property
    def job(self) -> tuple[str, str]:
        return self.namespace, self.owner or f"Pod/{self.name}"


@dataclass(frozen=True)
class Impact:
    """`is_known` False: the pods were not read. `is_one_of`: it is unknown which of the pods has the GPU."""

    is_known: bool = True
    is_one_of: bool = False
    is_gpu: bool = False  # it is about one GPU, not about its node
    pods: int = 0
    jobs: int = 0  # number of controllers; a pod without a controller counts as one
    gpus: int = 0  # whole ones that they have
    uncounted: int = 0  # pods with slices, shares or claims
    perhaps: int = 0  # for a partitioned GPU: other pods with parts on the node, on an unknown GPU
    names: tuple[str, ...] = ()  # namespace/name of the first few
    namespaces: tuple[str, ...] = ()
    seen_until: datetime | None = None  # when the pods there were last seen; None: they are, or were never read

    @property
    def short(self) -> str:
        """Returns the impact as text for a list."""
        return self._short if self.seen_until is None else f"{self._short}, as of {to_the_minute(self.seen_until)}"

    @property
    def sentence(self) -> str:
        if self.seen_until is None:
            return self._sentence
        return f"{self._sentence} Its pods were last seen at {to_the_second(self.seen_until)}."

    @property
    def _short(self) -> str:
        if not self.is_known:
            return "its pods were not read"
        if not self.pods:
            return "no pods"
        one_of = either(self.pods, "perhaps ", "perhaps one of ") if self.is_one_of else ""
        others = f" and perhaps {either(self.perhaps, 'another', 'others')}" if self.perhaps else ""
        return one_of + count(self.pods, "pod") + others + (f", {count(self.gpus, 'GPU')}" if self.gpus else "")

    @property
    def _sentence(self) -> str:
        where = "this GPU" if self.is_gpu else "GPUs there"
        if not self.is_known:
            return f"The pods with {where} are unknown: pods were not read."
        if not self.pods:
            return f"No pod has {where}."
        of_jobs = f" of {count(self.jobs, 'job')}" if self.jobs != self.pods else ""
        who = f"{count(self.pods, 'pod')}{of_jobs} in {count(len(self.namespaces), 'namespace')}"
        if self.is_one_of:
            begin, whose = either(self.pods, "Perhaps", "Perhaps one of"), either(self.pods, "this pod", "these pods")
            return f"{begin} {who} has this GPU. No source names the GPUs of {whose}."
        whole = [count(self.gpus, "GPU")] if self.gpus else []
        others = ["slices, shares or GPUs by claims"] if self.uncounted else []
        what = where if self.is_gpu else f"{' and '.join([*whole, *others])} there"
        return f"{who} {either(self.pods, 'has', 'have')} {what}{self._perhaps}."

    @property
    def _perhaps(self) -> str:
        if not self.perhaps:
            return ""
        some_of = either(self.perhaps, "", "some of ")
        which = either(self.perhaps, "GPU it has", "GPUs they have")
        return f", and perhaps {some_of}{count(self.perhaps, 'other pod')} of its node: it is unknown which {which}"


def impact_of(pods: Collection[AllocatedPod], *, gpu: int | str | None = None, is_known: bool = True) -> Impact:
    """Returns the impact of a finding about a node or one of its GPUs. `pods` are those of the node."""
    is_gpu = gpu is not None
    if not is_known:
        return Impact(is_known=False, is_gpu=is_gpu)
    hit = [pod for pod in pods if gpu in pod.boards] if is_gpu else list(pods)
    unplaced = [pod for pod in pods if pod.has_unplaced or not pod.boards] if is_gpu else []
    unsure = unplaced if not hit else []
    # An exporter names one of the pods that share a GPU. A whole GPU has one pod.
    beside = [pod for pod in unplaced if pod not in hit and not pod.gpus] if not any(pod.gpus for pod in hit) else []
    hit = sorted(hit or unsure, key=lambda pod: (-pod.gpus, pod.namespace, pod.name))
    return Impact(
        is_one_of=bool(unsure),
        is_gpu=is_gpu,
        pods=len(hit),
        jobs=len({pod.job for pod in hit}),
        gpus=sum(pod.gpus for pod in hit),
        uncounted=sum(not pod.gpus for pod in hit),
        perhaps=len(beside) if not unsure else 0,
        names=tuple(f"{pod.namespace}/{pod.name}" for pod in hit[:NAMED]),
        namespaces=tuple(sorted({pod.namespace for pod in hit})),
    )
