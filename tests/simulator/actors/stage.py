"""The whole cast on a store, without threads and without waiting: time jumps to whatever is due next."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from simulator.actors.dra.api import Api
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.actors.gpu_operator.release import Release
from simulator.actors.loop import Loop
from simulator.actors.objects import Obj, labels
from simulator.actors.play import Play
from simulator.actors.store_cluster import StoreCluster
from simulator.clock import Clock
from simulator.disruption import BudgetKeeper
from simulator.faults import Board
from simulator.fleets.mixes import mixed
from simulator.fleets.plan import Plan
from simulator.fleets.planting import Planting
from simulator.fleets.small import small
from simulator.kinds import EVENT, NODE, POD
from simulator.quantities import wants_gpu
from simulator.store import Store

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@dataclass
class VirtualTime:
    passed_s: float = 0.0

    def monotonic(self) -> float:
        return self.passed_s


@dataclass(frozen=True, slots=True)
class VirtualClock(Clock):
    time: VirtualTime = field(default_factory=VirtualTime)

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.time.passed_s)


class Stage:
    """Act on `store` as an outsider would; `run` lets the cluster answer."""

    def __init__(
        self, store: Store, time: VirtualTime, faults: Board, release: Release, dra: Api | None = None, **given: Any
    ) -> None:
        self.store, self.time, self.faults = store, time, faults
        self.budgets = BudgetKeeper(store)
        self.loop = Loop(store.clock, time.monotonic)
        self.play = Play(StoreCluster(store), self.loop, faults, release=release, dra=dra, **given)
        self.history: dict[str, list[str]] = {}
        self.play.world[NODE].on_change(self._note)
        self.play.fill()
        self.settle()

    @classmethod
    def of(cls, plan: Plan, faults: Board, **given: Any) -> "Stage":
        time = VirtualTime()
        store = Store(VirtualClock(time=time))
        Planting(StoreCluster(store), plan, NOON).plant()
        return cls(store, time, faults, plan.release, Api() if plan.has_claims else None, **given)

    @classmethod
    def joining(cls, other: "Stage") -> "Stage":
        """A new cast in the same cluster; the old one plays no more."""
        return cls(other.store, other.time, other.faults, Release())

    def _note(self, was: Obj | None, node: Obj | None) -> None:
        """Every upgrade state a node went through, in order."""
        if was and node and labels(was).get(keys.STATE) != labels(node).get(keys.STATE):
            self.history.setdefault(node["metadata"]["name"], []).append(labels(node).get(keys.STATE, ""))

    def settle(self) -> None:
        """Everything that is due now."""
        while True:
            self.budgets.look()
            moved = [mirror.pump() for mirror in self.play.world.mirrors]
            if not (self.loop.turn() or any(moved)):
                return

    def run(self, cluster_s: float) -> None:
        end = self.time.passed_s + cluster_s
        self.until(lambda: False, limit_s=end - self.time.passed_s, must=False)
        self.time.passed_s = end
        self.settle()

    def until(self, is_true: Callable[[], bool], *, limit_s: float = 3600, must: bool = True) -> float:
        """Cluster seconds it took."""
        began = self.time.passed_s
        self.settle()
        while not is_true():
            idle_s = self.loop.idle_s()
            if idle_s is None or self.time.passed_s + idle_s > began + limit_s:
                assert not must, f"not within {limit_s} s of cluster time"
                break
            self.time.passed_s += idle_s
            self.settle()
        return self.time.passed_s - began

    def node(self, name: str) -> Obj:
        return self.store.get(NODE, name)

    def state(self, name: str) -> str:
        return labels(self.node(name)).get(keys.STATE, "")

    def states(self) -> dict[str, str]:
        return {name: self.state(name) for name in self.gpu_nodes()}

    def gpu_nodes(self) -> list[str]:
        listed, _, _ = self.store.list(NODE, label_selector=f"{keys.PRESENT}=true")
        return [node["metadata"]["name"] for node in listed]

    def pods(self, node: str = "", selector: str = "", namespace: str = "") -> list[Obj]:
        where = f"spec.nodeName={node}" if node else ""
        return self.store.list(POD, namespace, label_selector=selector, field_selector=where)[0]

    def driver_pod(self, node: str) -> Obj:
        (pod,) = self.pods(node, f"{keys.COMPONENT}={keys.DRIVER_COMPONENT}")
        return pod

    def label(self, node: str, **given: str | None) -> None:
        self.store.patch(NODE, node, {"metadata": {"labels": given}}, how="merge")

    def set_state(self, node: str, state: str) -> None:
        self.label(node, **{keys.STATE: state})

    def skip(self, *nodes: str) -> None:
        for node in nodes:
            self.label(node, **{keys.SKIP: "true"})

    def release(self, *nodes: str) -> None:
        for node in nodes:
            self.label(node, **{keys.SKIP: None})

    def annotate(self, node: str, key: str, value: str | None) -> None:
        self.store.patch(NODE, node, {"metadata": {"annotations": {key: value}}}, how="merge")

    def cordon(self, node: str) -> None:
        self.store.patch(NODE, node, {"spec": {"unschedulable": True}}, how="merge")

    def is_cordoned(self, node: str) -> bool:
        return bool(self.node(node)["spec"].get("unschedulable"))

    def tenants(self, node: str) -> list[Obj]:
        """Pods on a node that use GPUs."""
        return [pod for pod in self.pods(node) if wants_gpu(pod)]

    def driver(self, name: str, **spec: Any) -> None:
        self.store.patch(NVIDIA_DRIVER, name, {"spec": spec}, how="merge")

    def events(self, node: str) -> list[str]:
        listed, _, _ = self.store.list(EVENT, "default", field_selector=f"involvedObject.name={node}")
        return [event["message"] for event in listed if event["reason"] == keys.REASON]


NEW = "580.126.20"


def a_fleet(nodes: int = 2, *, faults: Board | None = None, **given: Any) -> Stage:
    """Half of the nodes are H100, named first."""
    plan = small(nodes=nodes)
    return Stage.of(replace(plan, **given), faults or Board())


def a_mix(mix: str, nodes: int = 4, *, faults: Board | None = None, mode: str = "", **given: Any) -> Stage:
    plan = mixed(nodes=nodes, mix=mix, mode=mode)
    return Stage.of(replace(plan, **given), faults or Board())
