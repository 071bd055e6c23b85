"""What tenants do with their GPUs: a smooth line in time for each pod, by what kind of work it is."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from math import pi, sin

from simulator.actors.objects import Obj, annotations, controller, name, namespace, spec

TAU = 2 * pi
DAY_S = 86_400.0
DIP_S = 25.0  # while a checkpoint is written
DEVELOPERS = frozenset({"notebooks", "research"})
WORK_ANNOTATION = "hardware.example.com/work"  # on a pod: one of those below


class Work(StrEnum):
    TRAINING = "training"  # high and steady, but for its checkpoints
    INFERENCE = "inference"  # in bursts, more by day, with its memory almost full from the start
    DEVELOPMENT = "development"  # somebody tries something, and then thinks about it
    NOTHING = "nothing"  # it holds its GPUs, and nobody uses them


@dataclass(frozen=True, slots=True)
class Load:
    work: Work
    seed: float  # 0 to 1
    gpus: int  # of the pod: one alone moves nothing over NVLink
    tide: float = 0.0  # 0 to 1: when requests come; the pods of a service have them at the same time

    @classmethod
    def of(cls, pod: Obj, gpus: int) -> "Load":
        owner = controller(pod) or {"name": name(pod)}
        seed, tide = fraction(f"{namespace(pod)}/{name(pod)}"), fraction(f"{namespace(pod)}/{owner['name']}")
        return cls(work_of(pod), seed, gpus, tide)

    def activity(self, at_s: float) -> float:
        """Of the GPU, 0 to 1."""
        match self.work:
            case Work.TRAINING:
                return _training(self.seed, at_s)
            case Work.INFERENCE:
                return _inference(self.seed, self.tide, at_s)
            case Work.DEVELOPMENT:
                return _development(self.seed, at_s)
        return 0.0

    @property
    def memory(self) -> float:
        """Of the GPU's, 0 to 1."""
        match self.work:
            case Work.TRAINING:
                return 0.74 + 0.16 * self.seed
            case Work.INFERENCE:
                return 0.90 + 0.06 * self.seed
        return 0.02 + 0.3 * self.seed

    @property
    def nvlink(self) -> float:
        """How much of it goes over NVLink, 0 to 1."""
        if self.gpus < 2:
            return 0.0
        return 0.45 if self.work is Work.TRAINING else 0.12

    @property
    def tensor(self) -> float:
        return {Work.TRAINING: 0.46, Work.INFERENCE: 0.21}.get(self.work, 0.12)

    @property
    def dram(self) -> float:
        return {Work.TRAINING: 0.38, Work.INFERENCE: 0.58}.get(self.work, 0.2)


def work_of(pod: Obj) -> Work:
    """As its author says; where none does, the fleets' own priorities and namespaces tell it."""
    if (said := annotations(pod).get(WORK_ANNOTATION)) in tuple(Work):
        return Work(said)
    if namespace(pod) in DEVELOPERS:
        return Work.DEVELOPMENT
    return Work.INFERENCE if spec(pod).get("priorityClassName") == "inference" else Work.TRAINING


def fraction(text: str) -> float:
    """From 0 to 1, and for the same text the same."""
    return int.from_bytes(sha256(text.encode()).digest()[:4]) / 0xFFFFFFFF


def _training(seed: float, at_s: float) -> float:
    every_s = 400.0 + 800.0 * seed
    into_s = (at_s + seed * 9_000.0) % every_s
    busy = 0.955 + 0.025 * sin(at_s / 37.0 + seed * 40.0)
    return busy * (1.0 - 0.7 * sin(pi * into_s / DIP_S) ** 2) if into_s < DIP_S else busy


def _inference(seed: float, tide: float, at_s: float) -> float:
    day = 0.5 + 0.5 * sin(TAU * (at_s / DAY_S + tide / 4))
    burst = 0.5 + 0.5 * sin(at_s / 53.0 + tide * 50.0)
    flutter = 0.5 + 0.5 * sin(at_s / 17.3 + seed * 90.0)
    return 0.06 + 0.2 * day + 0.65 * burst * flutter * (0.4 + 0.6 * day)


def _development(seed: float, at_s: float) -> float:
    every_s, awake_s = 1_500.0 + 2_400.0 * seed, 150.0 + 200.0 * seed
    into_s = (at_s + seed * 70_000.0) % every_s
    return 0.7 * sin(pi * into_s / awake_s) ** 2 if into_s < awake_s else 0.0
