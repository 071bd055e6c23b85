"""One small cluster, its rows, a plan and the people around it. It is kept and put back whole, in a millisecond."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any
from unittest import mock

from benchmarks.crashing import glances
from benchmarks.crashing.clock import VirtualClock
from benchmarks.crashing.compiled import compiled_once
from benchmarks.crashing.dra_driver import GPUS
from benchmarks.crashing.jobs import Fate, Jobs
from benchmarks.crashing.line import Line, connecting
from benchmarks.crashing.nodes_seen import OPT_OUTS
from benchmarks.crashing.operator import Operator
from benchmarks.crashing.rows import JUDGED, Rows, keep_database, put_database_back
from benchmarks.crashing.seams import KilledError, Seams, Turn
from benchmarks.crashing.words import ENGINE, Word
from fleet.messages import announce, wake
from fleet.models import Bookmark, Cluster, Pool
from kube import client
from people.models import RoleBinding, User
from rollouts.commands.plan_drafts import draft
from rollouts.commands.plan_start import start
from rollouts.commands.stage_drafts import StageDraft
from rollouts.engine.round import run_round
from rollouts.models import Plan, StageKind
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.objects import labels
from simulator.actors.store_cluster import StoreCluster
from simulator.clock import micro_stamp
from simulator.events import Record
from simulator.fleets.plan import DRIVER_NEXT, DRIVER_NOW
from simulator.fleets.planting import Planting
from simulator.fleets.small import cluster_policy, small
from simulator.kinds import DAEMON_SET, NAMESPACE, NODE, POD
from simulator.store import Store

OLD, NEW = DRIVER_NOW, DRIVER_NEXT
KUBECTL = "kubectl/v1.34.1"
WORKERS = ("worker-1", "worker-2")
GATES: dict[str, dict[str, Any]] = {"driver_version": {}, "failure_budget": {}, "soak": {"duration_s": 2}}
ASKED = GATES | {"approval": {"needed": 1}}
PEOPLE = {  # ada has a role by which she might approve, were it not her own plan
    "ada": ("operator", "approver"), "bob": ("operator",), "carol": ("approver",), "dave": ("approver",),
}  # fmt: skip
SENTINEL, KARPENTER, AUTOSCALER = OPT_OUTS
WATCHED = {"nvsentinel.dgxc.nvidia.com/driver.installed": "true"}  # so that each release keeps NVSentinel off
EXTERNAL_CONTROLLERS: tuple[dict[str, dict[str, str]], ...] = (  # of one node after another
    {"labels": WATCHED},
    {"labels": {**WATCHED, "karpenter.sh/nodepool": "gpu"}, "annotations": {KARPENTER: "false"}},
    {"labels": WATCHED, "annotations": {AUTOSCALER: "false"}},
    {"labels": {**WATCHED, SENTINEL: "false"}, "annotations": {AUTOSCALER: "true"}},
)
LONG = 7 * 24 * 3600  # seconds that a gate may wait: none of a schedule waits for so long


@dataclass(frozen=True)
class Shape:
    """What a schedule begins with."""

    by_policy: bool
    nodes: int  # GPU nodes of the driver object
    budget: int  # of each stage
    parallel: int  # of the operator
    dra: int = 0  # of its GPU nodes: those whose GPUs a DRA driver offers, and no label names their driver
    proves: bool = False  # its stages pass once a test Job has completed on each node


@dataclass
class Kept:
    """Everything at one moment."""

    database: bytes
    shelves: dict[Any, tuple[dict[str, Any], list[str]]]
    version: int
    at: datetime
    seen: dict[str, tuple[str, int]]
    entries: list[dict[str, Any]]
    words: list[Word]
    operator: dict[str, Any]
    bugs: list[str]


@dataclass
class World:
    shape: Shape
    seams: Seams = field(default_factory=Seams)
    clock: VirtualClock = field(default_factory=VirtualClock)
    words: list[Word] = field(default_factory=list)
    bugs: list[str] = field(default_factory=list)
    turns: int = 0
    is_taken_back: bool = False  # a role of who approves, or the right to write to the cluster
    is_old_copy: bool = False  # the database was put back to an earlier moment, and the cluster was not
    before: list[dict[str, Any]] = field(default_factory=list)  # of the log: up to the moment that was put back

    def __post_init__(self) -> None:
        self.store = Store(self.clock)  # type: ignore[arg-type]
        self.line = Line(self.store, self.clock, self.seams)
        self._plant()
        self.cluster = self._rows()
        self.rows = Rows(self.store, self.cluster)
        self.rows.look(now=self.clock())
        self.first_nodes = self.store.list(NODE)[0]
        self.first_offered = self.operator.dra.offered()
        self.selector = dict(self.operator.daemonset()["spec"]["template"]["spec"]["nodeSelector"])
        self.plan = self._draft()
        self.line.begin_log()
        self.drafted = self.keep()  # before it is started
        self.start()
        self.started = self.keep()

    # Making it

    @property
    def canary(self) -> str:
        """The node that goes first, and unasked. Blank: the plan was not started. A draft that is started after a node
        has joined may choose another one."""
        first = self.plan.stages.get(index=0).targets.order_by("position").first()
        return first.node_name if first else ""

    @property
    def kind(self) -> str:
        return "ClusterPolicy" if self.shape.by_policy else "NVIDIADriver"

    @property
    def called(self) -> str:
        return "cluster-policy" if self.shape.by_policy else "h100"

    @property
    def object_path(self) -> str:
        if self.shape.by_policy:
            return "/apis/nvidia.com/v1/clusterpolicies/cluster-policy"
        return "/apis/nvidia.com/v1alpha1/nvidiadrivers/h100"

    def _plant(self) -> None:
        fleet = cluster_policy(nodes=self.shape.nodes) if self.shape.by_policy else small(nodes=2 * self.shape.nodes)
        machines = list(fleet.machines)
        for index in range(self.shape.nodes - self.shape.dra, self.shape.nodes):
            machines[index] = replace(machines[index], has_claims=True, gpus=GPUS)
        fleet = replace(fleet, machines=tuple(machines))
        Planting(StoreCluster(self.store), fleet, self.clock.now()).plant()
        self.store.create(NAMESPACE, {"metadata": {"name": "quarterdeck"}})
        for number, node in enumerate(self.store.list(NODE)[0]):
            has = {"metadata": EXTERNAL_CONTROLLERS[number % len(EXTERNAL_CONTROLLERS)]}
            self.store.patch(NODE, node["metadata"]["name"], has, how="merge")
        for pod in self.store.list(POD)[0]:
            metadata = pod["metadata"]
            is_needed = metadata["namespace"] == keys.NAMESPACE and any(
                labels(pod).get(key) in {keys.DRIVER_COMPONENT, keys.VALIDATOR_APP} for key in ("app", keys.COMPONENT)
            )
            if not is_needed:
                self.store.delete(POD, metadata["name"], metadata["namespace"], grace_s=0)
        policy = {"upgradePolicy": {"maxParallelUpgrades": self.shape.parallel, "maxUnavailable": self.shape.nodes}}
        if self.shape.by_policy:
            self.store.patch(CLUSTER_POLICY, self.called, {"spec": {"driver": policy}}, how="merge")
        else:
            for driver_object in self.store.list(NVIDIA_DRIVER)[0]:
                self.store.patch(NVIDIA_DRIVER, driver_object["metadata"]["name"], {"spec": policy}, how="merge")
        self.jobs = Jobs(self.store)
        beside = self.jobs if self.shape.proves else None
        self.operator = Operator(self.line, self.kind, self.called, new_version=NEW, jobs=beside)
        for _ in range(2):
            self.operator.step()
        for daemonset in self.store.list(DAEMON_SET)[0]:
            status = {"status": {"observedGeneration": daemonset["metadata"]["generation"]}}
            named = daemonset["metadata"]
            self.store.patch(DAEMON_SET, named["name"], status, named["namespace"], how="merge", subresource="status")

    def _rows(self) -> Cluster:
        uid = self.store.get(NAMESPACE, "kube-system")["metadata"]["uid"]
        cluster = Cluster.objects.create(
            name="north", uid=uid, kubeconfig="/in/process", context="bench", mode="operate", approval="none",
            added_at=self.clock(),
        )  # fmt: skip
        for name in JUDGED:
            Bookmark.objects.create(cluster=cluster, kind=name, state="watching", state_since=self.clock())
        Pool.objects.create(
            cluster=cluster, name="h100", selector="nvidia.com/gpu.present=true", max_unavailable=self.shape.nodes
        )
        self.people = {name: User.objects.create(username=name) for name in PEOPLE}
        for name in PEOPLE:
            self.give_roles(name)
        return cluster

    def give_roles(self, name: str) -> None:
        for role in PEOPLE[name]:
            RoleBinding.objects.get_or_create(user=self.people[name], role=role, scope="fleet", scope_id=0)

    def _draft(self) -> Plan:
        size = {"max_unavailable": self.shape.budget, "timeout_s": LONG}
        test_job: dict[str, Any] = {"test_job": {}} if self.shape.proves else {}
        stages = [
            StageDraft("Canary", StageKind.CANARY, count=1, gate_options=GATES | test_job, **size),
            StageDraft("Rest", StageKind.POOL, gate_options=ASKED | test_job, **size),
        ]
        named = {} if self.shape.by_policy else {"name": self.called}
        return draft(
            cluster=self.cluster,
            title="",
            driver_object=self.cluster.driver_objects.get(kind=self.kind, **named),
            to_version=NEW,
            stages=stages,
            actor=self.person("ada"),
            now=self.clock(),
        )

    def start(self) -> None:
        """:raises Refusal: when it may not start now"""
        self.plan.refresh_from_db()
        revision = self.plan.revision
        start(self.plan, actor=self.person("ada"), reason="It is time.", expected_revision=revision, now=self.clock())

    def own_uid(self) -> str:
        """As the API server tells who its cluster is."""
        return str(self.store.get(NAMESPACE, "kube-system")["metadata"]["uid"])

    def name_cluster(self, uid: str) -> None:
        records = self.store.shelf(NAMESPACE).records
        has = records["kube-system"]
        records["kube-system"] = Record({**has.obj, "metadata": {**has.obj["metadata"], "uid": uid}}, has.version)

    def person(self, name: str) -> User:
        return self.people[name]

    # Kept, and put back

    def keep(self) -> Kept:
        return Kept(
            keep_database(),
            {key: (dict(shelf.records), list(shelf.keys)) for key, shelf in self.store.shelves.items()},
            self.store.version,
            self.clock.at,
            dict(self.rows.seen),
            self.entries(),
            list(self.words),
            {"sick": set(self.operator.sick), "made": self.operator.made, "kept_pod": self.operator.kept_pod},
            list(self.bugs),
        )

    def put_back(self, kept: Kept) -> None:
        put_database_back(kept.database)
        for key, (records, its_keys) in kept.shelves.items():
            shelf = self.store.shelves[key]
            shelf.records, shelf.keys = dict(records), list(its_keys)
            shelf.log.changes.clear()
        self.store.version = kept.version
        self.clock.at = kept.at
        self.rows.seen = dict(kept.seen)
        self.words, self.bugs, self.before = list(kept.words), list(kept.bugs), kept.entries
        self.is_old_copy = self.is_taken_back = False
        self.line.late.clear()
        self.line.begin_log()
        for name, value in kept.operator.items():
            setattr(self.operator, name, copy.copy(value))
        self.jobs.fate = Fate.PULLED
        self.plan.refresh_from_db()

    def entries(self) -> list[dict[str, Any]]:
        """The API server's log, from the first request on."""
        return [*self.before, *self.line.log]

    # A worker's round

    def round(self, who: str, **planned: Any) -> Turn:
        """One message, taken by a worker. It may be cut short."""
        known = len(self.bugs)
        run = partial(run_round, plan_id=self.plan.pk, owner=who, clock=self.clock)
        turn = self.live(Turn(who, **planned), run)
        is_whole = not turn.is_cut and not turn.faults and len(self.bugs) == known
        self.say(ENGINE, self.state(), is_whole=is_whole, soaking=glances.soaking(self.plan.pk))
        return turn

    def live(self, turn: Turn, run: Callable[[], None]) -> Turn:
        self.turns += 1
        turn.number = self.turns
        with self.seams.turn_of(turn):
            try:
                run()
            except KilledError:
                pass
            except Exception as bug:  # noqa: BLE001 - whatever it is, a round must not end by it
                self.bugs.append(f"{type(bug).__name__}: {bug}")
        return turn

    def state(self) -> str:
        """As a page would show it."""
        return f"is {self.plan_state}{' and paused' if glances.is_paused(self.plan.pk) else ''}"

    @property
    def plan_state(self) -> str:
        """As its row has it now."""
        return glances.state_of(self.plan.pk)

    def say(self, who: str, verb: str, **more: Any) -> None:
        after = len(self.before) + len(self.line.log)
        self.words.append(Word(after, micro_stamp(self.clock.moment()), who, verb, **more))


@contextmanager
def in_this_process() -> Iterator[None]:
    """Nothing leaves it: no message, no announcement."""
    with mock.patch.object(wake, "queue"), mock.patch.object(announce, "send"), compiled_once():
        yield


@contextmanager
def connected(world: World) -> Iterator[None]:
    """Its rounds ask its API server, and pass seams."""
    with mock.patch.object(client, "connect", connecting(world.line)), world.seams.watching():
        yield
