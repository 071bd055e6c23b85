"""What a plant is: its place, what the data have of it, what it is made of, and its kind."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.finding.day.deeds import Deed
from benchmarks.finding.day.scraping import Target
from benchmarks.finding.day.stage import Stage
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.kubelet.host import MIG_STATE
from simulator.actors.objects import annotations, condition, is_unschedulable, labels, status, uid
from simulator.faults.board import Fault
from simulator.kinds import DEPLOYMENT, EVENT, JOB, STATEFUL_SET
from simulator.quantities import requests

MINUTE = 60.0
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Place:
    """A GPU of a node, and what tells whether a fault fits there."""

    node: str
    gpu: int
    gpus: int  # of the node
    is_of_one_job: bool = False
    has_pods: bool = False
    has_room: bool = False  # for a pod with one GPU more
    owner: str = ""  # the NVIDIADriver of it
    neighbour: str = ""  # another node of that one
    workload_class: str = ""  # of its pool; blank: it is in none


@dataclass
class Seen:
    """What the data have of a plant's place at one moment, and what they had just before it began."""

    node: dict[str, Any]
    target: Target
    place: Place
    stage: Stage
    before: dict[str, float] = field(default_factory=dict)
    pods: Sequence[dict[str, Any]] = ()  # on the node
    falls: int = 0  # how often it stopped being ready in the last half hour

    def said(self, series: str) -> float:
        return self.target.values.get((series, str(self.place.gpu)), 0.0)

    def grown(self, series: str) -> float:
        return self.said(series) - self.before.get(series, 0.0)

    @property
    def resets(self) -> int:
        """Of its GPU, in this day."""
        return self.target.anew[str(self.place.gpu)]

    @property
    def is_silent(self) -> bool:
        return not self.target.values

    @property
    def readiness(self) -> str:
        return str(condition(self.node, "Ready").get("status", ""))

    def is_true(self, condition_type: str) -> bool:
        return condition(self.node, condition_type).get("status") == "True"

    @property
    def has_crashing_pods(self) -> bool:
        """Started anew, and waiting to be once more."""
        parts = ("initContainerStatuses", "containerStatuses")
        reports = (each for pod in self.pods for part in parts for each in status(pod).get(part) or ())
        return any(each.get("restartCount") and "waiting" in (each.get("state") or {}) for each in reports)

    @property
    def upgrade_state(self) -> str:
        return self.stage.upgrade_state(self.place.node)

    @property
    def driver_label(self) -> str:
        return labels(self.node).get("nvidia.com/cuda.driver-version.full", "")

    @property
    def is_uncordoned_under_way(self) -> bool:
        """The operator's note of the cordon is there, its driver pod was replaced, and the cordon is not."""
        restarted = self.upgrade_state in (UpgradeState.POD_RESTART, UpgradeState.VALIDATION, UpgradeState.UNCORDON)
        return restarted and keys.WAS_CORDONED in annotations(self.node) and not is_unschedulable(self.node)

    @property
    def still_s(self) -> float:
        """Since any node's upgrade last moved."""
        return self.stage.passed_s - self.stage.moved_s

    @property
    def is_at_work(self) -> bool:
        """The operator changes its driver."""
        idle = (UpgradeState.UNKNOWN, UpgradeState.DONE, UpgradeState.REQUIRED, UpgradeState.FAILED)
        return self.upgrade_state not in idle

    @property
    def runtime(self) -> str:
        return str(status(self.node)["nodeInfo"]["containerRuntimeVersion"])

    @property
    def mig_state(self) -> str:
        return labels(self.node).get(MIG_STATE, "")

    @property
    def takes_turns(self) -> bool:
        return labels(self.node).get("nvidia.com/gpu.sharing-strategy") == "time-slicing" and self.has_tenants

    @property
    def has_tenants(self) -> bool:
        return any(requests(pod)[GPU] for pod in self.pods)

    def is_rejected(self, where: str) -> bool:
        """Whether pods of what is in a namespace now are, by Events about it."""
        store = self.stage.store
        owners = {uid(record.obj) for kind in (JOB, STATEFUL_SET) for record in store.page(kind, where).records}
        events = (record.obj for record in store.page(EVENT, where).records)
        return any(each.get("reason") == "FailedCreate" and each["involvedObject"]["uid"] in owners for each in events)

    @property
    def is_operator_down(self) -> bool:
        return not status(self.stage.store.get(DEPLOYMENT, "gpu-operator", keys.NAMESPACE)).get("readyReplicas")

    @property
    def allocatable(self) -> int:
        return int((status(self.node).get("allocatable") or {}).get(GPU, 0))


@dataclass(frozen=True)
class Planting:
    """What one plant is made of. `says`: what the finding about it has to say."""

    faults: tuple[Fault, ...] = ()
    says: str = ""
    deeds: tuple[Deed, ...] = ()


Make = Callable[[random.Random, Place], Planting]


@dataclass(frozen=True)
class Kind:
    name: str
    make: Make
    is_visible: Callable[[Seen], bool] = lambda _: False
    rules: tuple[str, ...] = ()  # of which one is right about it; none: it is no trouble, and nothing is to be found
    after_s: float = 0.0  # how long its rule waits, by docs/findings.md
    lacks_s: float = math.inf  # of telemetry, until its rule's wait begins anew: it wants hours that are heard whole
    is_of_gpu: bool = True
    fits: Callable[[Place], bool] = lambda _: True
    visible_within_s: float = 20 * MINUTE  # else it was planted in vain
    needs_telemetry: bool = True
    rests_s: float = 75 * MINUTE  # after its end, until nothing is seen of it any more
    of_cluster: str = ""  # what a finding about it is about, where that is no node's: one at a time
    is_upgrade: bool = False  # of the node's driver, which there is one of in a day
    is_alone: bool = False  # no other node's driver is changed meanwhile
    leaves: tuple[str, ...] = ()  # rules that say true things of what it left behind, and not what it is
