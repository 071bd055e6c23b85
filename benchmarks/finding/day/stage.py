"""A simulated fleet without threads and without waiting: time jumps to whatever is due next."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from simulator.actors.exporting.counters import Choice
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.loop import Loop
from simulator.actors.objects import is_true, labels, name
from simulator.actors.play import Play
from simulator.actors.skus import SKUS
from simulator.actors.store_cluster import StoreCluster
from simulator.clock import Clock
from simulator.disruption import BudgetKeeper
from simulator.faults import Board
from simulator.fleets.machines import Machine
from simulator.fleets.plan import DRIVER_NOW, INSTANCE_TYPE, Plan
from simulator.fleets.planting import Planting
from simulator.fleets.small import KERNELS
from simulator.fleets.tenants import Workload
from simulator.kinds import NAMESPACE, NODE, POD
from simulator.store import Store

MORNING = datetime(2026, 11, 23, 6, tzinfo=UTC)
EXPORTER = "nvidia-dcgm-exporter"
H100, A100 = SKUS["NVIDIA-H100-80GB-HBM3"], SKUS["NVIDIA-A100-SXM4-80GB"]
TORCH, VLLM = "nvcr.io/nvidia/pytorch:25.09-py3", "docker.io/vllm/vllm-openai:v0.11.0"
CHOSEN = {"spec": {"cdi": {"enabled": True, "nriPluginEnabled": True}}}  # by its people, whose containerd is new enough
# Nobody but a plan decides who goes when, and the operator waits without an end for those who ask for it.
AWAITED = {"example.com/awaited": "true"}
WAITING = {"waitForCompletion": {"podSelector": "example.com/awaited=true"}}
EVERYBODY = "100%"
ZONE, ZONES = "topology.kubernetes.io/zone", ("region-1a", "region-1b")
RUNTIME = "containerd://2.3.1"
Obj = dict[str, Any]


class PoolAgreed(NamedTuple):
    """What people have agreed about some nodes. The others are in no pool."""

    name: str
    labels: dict[str, str]
    workload_class: str


POOLS = (
    PoolAgreed("serving", {INSTANCE_TYPE: A100.instance_type, ZONE: ZONES[0]}, "inference"),
    PoolAgreed("workshop", {INSTANCE_TYPE: A100.instance_type, ZONE: ZONES[1]}, "development"),
)
NEW_TEAMS = ("evaluation", "sweeps", "previews")  # they have namespaces, and nothing in them yet


@dataclass
class Passed:
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class VirtualClock(Clock):
    """Of the simulator and of the product alike: whoever asks is told the same."""

    passed: Passed = field(default_factory=Passed)

    def now(self) -> datetime:
        return MORNING + timedelta(seconds=self.passed.seconds)

    def __call__(self) -> datetime:
        return self.now()


def fleet_of(nodes: int) -> Plan:
    """A quarter with eight GPUs each, the others with four. A third of each works on one job that has all of a node."""
    gpu = [
        Machine(
            f"gpu-{index + 1:04}", index, ZONES[index % 2], KERNELS[index % 5 in (1, 4)],
            sku=A100 if index % 4 else H100, gpus=4 if index % 4 else 8, driver=DRIVER_NOW,
            owner="a100" if index % 4 else "h100",
        )
        for index in range(nodes)
    ]  # fmt: skip
    cpu = [Machine(f"cpu-{index + 1:03}", nodes + index, ZONES[0], KERNELS[0]) for index in range(4)]
    large, small = -(-nodes // 4), nodes * 3 // 4
    workloads = (
        Workload("pretrain", "pretraining", TORCH, 8, large // 2, "training", H100.product),
        Workload("finetune", "pretraining", TORCH, 4, small // 3, "training", A100.product),
        Workload("chat-70b", "chat", VLLM, 2, max(1, small // 2), "inference", A100.product),
        Workload("rerank", "search", VLLM, 1, large, "inference", H100.product),
    )
    busy = tuple(workload for workload in workloads if workload.replicas)
    return Plan(
        (*gpu, *cpu), busy, counters=Choice.ALL, max_parallel=0, max_unavailable=EVERYBODY, selects_by=INSTANCE_TYPE
    )


def class_of(machine: Machine) -> str:
    """The workload class of its pool; blank: it is in none."""
    said = {INSTANCE_TYPE: machine.sku.instance_type if machine.sku else "", ZONE: machine.zone}
    return next((pool.workload_class for pool in POOLS if pool.labels == said), "")


class Stage:
    """The whole cast. Switch faults on at `board`, and let time pass."""

    def __init__(self, nodes: int) -> None:
        self.plan = fleet_of(nodes)
        self.machines = {machine.name: machine for machine in self.plan.machines if machine.sku}
        self.clock = VirtualClock()
        self.store = Store(self.clock)
        self.board = Board()
        Planting(StoreCluster(self.store), self.plan, self.clock.now()).plant()
        self.store.patch(CLUSTER_POLICY, "cluster-policy", CHOSEN, how="merge")
        for owner in sorted({machine.owner for machine in self.machines.values()}):
            self.upgrade_policy(owner, WAITING)
        for machine in self.plan.machines:
            self.run_on(machine.name, RUNTIME)
        for team in NEW_TEAMS:
            self.store.create(NAMESPACE, {"metadata": {"name": team}})
        self._budgets = BudgetKeeper(self.store)
        self._loop = Loop(self.clock, lambda: self.clock.passed.seconds)
        self.play = Play(StoreCluster(self.store), self._loop, self.board, release=self.plan.release)
        self.falls: dict[str, list[float]] = {}  # by node, when it stopped being ready
        self.moved_s = 0.0  # when the upgrade of any node last moved
        self.play.world[NODE].on_change(self._note)
        self.play.fill()
        self._settle()

    def _note(self, was: Obj | None, node: Obj | None) -> None:
        if was and node and is_true(was, "Ready") and not is_true(node, "Ready"):
            self.falls.setdefault(name(node), []).append(self.passed_s)
        if was and node and labels(was).get(keys.STATE) != labels(node).get(keys.STATE):
            self.moved_s = self.passed_s

    @property
    def passed_s(self) -> float:
        return self.clock.passed.seconds

    def run_until(self, passed_s: float) -> None:
        self._settle()
        while (idle_s := self._loop.idle_s()) is not None and self.passed_s + idle_s <= passed_s:
            self.clock.passed.seconds += idle_s
            self._settle()
        self.clock.passed.seconds = passed_s
        self._settle()

    def _settle(self) -> None:
        while True:
            self._budgets.look()
            moved = [mirror.pump() for mirror in self.play.world.mirrors]
            if not (self._loop.turn() or any(moved)):
                return

    def node(self, called: str) -> Obj:
        return self.store.get(NODE, called)

    def pods_on(self, called: str) -> list[Obj]:
        return list(self.play.world[POD].by("node", called))

    def exporter_on(self, called: str) -> Obj | None:
        """Its pod, where it is ready: what a Service leads to."""
        for pod in self.pods_on(called):
            if labels(pod).get("app") == EXPORTER and is_true(pod, "Ready") and not _is_ending(pod):
                return pod
        return None

    def label(self, called: str, key: str, value: str | None) -> None:
        self.store.patch(NODE, called, {"metadata": {"labels": {key: value}}}, how="merge")

    def run_on(self, called: str, runtime: str) -> None:
        patch = {"status": {"nodeInfo": {"containerRuntimeVersion": runtime}}}
        self.store.patch(NODE, called, patch, how="merge", subresource="status")

    def cordon(self, called: str, *, is_on: bool) -> None:
        self.store.patch(NODE, called, {"spec": {"unschedulable": is_on or None}}, how="merge")

    def upgrade_policy(self, driver: str, part: Obj) -> None:
        self.store.patch(NVIDIA_DRIVER, driver, {"spec": {"upgradePolicy": part}}, how="merge")

    def upgrade_state(self, called: str) -> str:
        return labels(self.node(called)).get(keys.STATE, "")

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        self._loop.later(seconds, act)

    def restart_exporter(self, called: str) -> None:
        """Its pod is deleted: its DaemonSet makes another."""
        for pod in self.pods_on(called):
            if labels(pod).get("app") == EXPORTER:
                self.store.delete(POD, name(pod), pod["metadata"]["namespace"])


def _is_ending(pod: Obj) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))
