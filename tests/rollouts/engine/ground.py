"""A small cluster that answers over HTTP, its rows, and a plan in it. Nothing moves but what a test moves."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from django.db import transaction

from fleet.models import Bookmark, Cluster, Pod
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.mirror.watch_scope import WatchScope
from gpu.labels import HELD_BY, UPGRADE_SKIP, UPGRADE_STATE
from kube import client
from people.models import User
from rollouts.commands.plan_drafts import draft
from rollouts.commands.plan_start import start
from rollouts.commands.stage_drafts import StageDraft
from rollouts.engine.act import carry_out
from rollouts.engine.act.writer import Writer
from rollouts.engine.round import run_round
from rollouts.lifecycle import StageState
from rollouts.models import Plan, Stage, StageKind, Target
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.store_cluster import StoreCluster
from simulator.fleets.plan import DRIVER_NEXT, DRIVER_NOW, Mode
from simulator.fleets.planting import Planting
from simulator.fleets.small import cluster_policy, small
from simulator.kinds import CONFIG_MAP, DAEMON_SET, NAMESPACE, NODE, POD
from simulator.run import Simulation
from tests.make import NOON, a_bookmark, a_cluster, a_user
from tests.rollouts.engine.kept import Kept, objects
from tests.saved_rows import Rows, put_rows, rows

OLD, NEW = DRIVER_NOW, DRIVER_NEXT
NODES = ("gpu-h100-001", "gpu-h100-002", "gpu-h100-003")
CANARY = "gpu-h100-003"  # its zone is that of most
REST = [name for name in NODES if name != CANARY]
JUDGED = tuple(
    KINDS[name]
    for name in (
        "nodes",
        "pods",
        "daemonsets.apps",
        "controllerrevisions.apps",
        "nvidiadrivers.nvidia.com",
        "clusterpolicies.nvidia.com",
    )
)
# Of the others, no test moves any.
MOVING = (
    KINDS["nodes"],
    KINDS["nvidiadrivers.nvidia.com"],
    KINDS["clusterpolicies.nvidia.com"],
)
QUICK_GATES: dict[str, dict[str, Any]] = {"driver_version": {}, "failure_budget": {}}
NONE: Mapping[str, str] = {}
PLANTED: dict[Mode, "Planted"] = {}
ARMED: dict[str, "Armed"] = {}  # by mode, and what its plan was given


@dataclass
class Clock:
    at: datetime = NOON

    def __call__(self) -> datetime:
        return self.at

    def move(self, **given: float) -> None:
        self.at += timedelta(**given)


@dataclass(frozen=True)
class Planted:
    """A ground that nobody has touched, and on which rows and version of a store it was made."""

    on: tuple[Rows, int]
    kept: Kept
    cluster_id: int
    ada_id: int
    versions: dict[str, tuple[str, str]]


@dataclass(frozen=True)
class Armed:
    """A plan that was armed on a ground nobody had touched."""

    kept: Kept
    cluster_id: int
    ada_id: int
    plan_id: int
    versions: dict[str, tuple[str, str]]


@dataclass
class Ground:
    simulation: Simulation
    cluster: Cluster
    ada: User
    connection: client.Connection
    clock: Clock = field(default_factory=Clock)
    mode: Mode = Mode.NVIDIA_DRIVER
    plan: Plan = field(init=False)
    read_until: int = 0
    versions: dict[str, tuple[str, str]] = field(default_factory=dict)  # uid → kind and resource version of its row
    born: tuple[Rows, int, datetime] = field(init=False)  # rows, cluster and clock as they were made

    # The cluster, as an outsider changes it

    @property
    def store(self):
        return self.simulation.store

    def node(self, name: str) -> dict[str, Any]:
        return self.store.get(NODE, name)

    def labels(self, name: str) -> dict[str, str]:
        return self.node(name)["metadata"].get("labels", {})

    def held(self) -> set[str]:
        listed, _, _ = self.store.list(NODE, label_selector=f"{UPGRADE_SKIP}=true")
        return {node["metadata"]["name"] for node in listed}

    def label(self, name: str, **given: str | None) -> None:
        self.store.patch(NODE, name, {"metadata": {"labels": given}}, how="merge")

    def free(self, name: str) -> None:
        self.label(name, **{UPGRADE_SKIP: None})

    def set_state(self, name: str, state: str | None) -> None:
        self.label(name, **{UPGRADE_STATE: state})

    def patch_node(self, name: str, patch: dict[str, Any]) -> None:
        self.store.patch(NODE, name, patch, how="merge")

    def join(self, name: str, *, like: str = CANARY) -> None:
        """A node like the others, and its driver pod."""
        node = self.node(like)
        labels = {key: value for key, value in node["metadata"]["labels"].items() if key != UPGRADE_SKIP}
        metadata = {"name": name, "labels": labels | {"kubernetes.io/hostname": name}}
        self.store.seed(NODE, {**node, "metadata": metadata})
        listed, _, _ = self.store.list(POD, "gpu-operator", label_selector="app.kubernetes.io/component=nvidia-driver")
        pod = next(pod for pod in listed if pod["spec"]["nodeName"] == like)
        kept = {key: pod["metadata"][key] for key in ("labels", "ownerReferences")}
        named = {**kept, "name": f"driver-on-{name}"}
        self.store.seed(POD, {**pod, "metadata": named, "spec": {**pod["spec"], "nodeName": name}}, "gpu-operator")

    def driver_pod(self, name: str) -> str:
        listed, _, _ = self.store.list(POD, "gpu-operator", label_selector="app.kubernetes.io/component=nvidia-driver")
        return next(pod["metadata"]["name"] for pod in listed if pod["spec"].get("nodeName") == name)

    def leave(self, name: str) -> None:
        """The driver object's DaemonSet no longer selects it: its driver pod goes."""
        pod = self.driver_pod(name)
        self.label(name, **{"nvidia.com/gpu.deploy.driver": "false"})
        self.store.delete(POD, pod, "gpu-operator", grace_s=0)
        Pod.objects.filter(cluster=self.cluster, name=pod).delete()

    def delete(self, name: str) -> None:
        pod = self.driver_pod(name)
        self.store.delete(NODE, name, grace_s=0)
        self.store.delete(POD, pod, "gpu-operator", grace_s=0)
        Pod.objects.filter(cluster=self.cluster, name=pod).delete()

    def cordon(self, name: str) -> None:
        self.store.patch(NODE, name, {"spec": {"unschedulable": True}}, how="merge")

    @property
    def is_by_policy(self) -> bool:
        return self.mode is Mode.CLUSTER_POLICY

    def driver_spec(self) -> dict[str, Any]:
        if self.is_by_policy:
            return self.store.get(CLUSTER_POLICY, "cluster-policy")["spec"]["driver"]
        return self.store.get(NVIDIA_DRIVER, "h100")["spec"]

    def change_driver(self, **given: Any) -> None:
        """As somebody else with kubectl."""
        if self.is_by_policy:
            self.change_policy(driver=given)
        else:
            self.store.patch(NVIDIA_DRIVER, "h100", {"spec": given}, how="merge")

    def change_policy(self, **given: Any) -> None:
        self.store.patch(CLUSTER_POLICY, "cluster-policy", {"spec": given}, how="merge")

    def version(self) -> str:
        return self.driver_spec()["version"]

    def write_version(self, version: str) -> None:
        self.change_driver(version=version)

    def take_the_new_driver(self, name: str, version: str = NEW) -> None:
        """The node names the new version as loaded, and its pod is in sync: the template here never changes."""
        major, minor, rev = version.split(".")
        loaded = {"driver-version.full": version, "driver.major": major, "driver.minor": minor, "driver.rev": rev}
        cuda = {f"nvidia.com/cuda.{key}": value for key, value in loaded.items()}
        self.label(name, **cuda)

    def stop_everything(self, reason: str) -> None:
        switch = {"metadata": {"name": "quarterdeck-stop"}, "data": {"reason": reason}}
        self.store.create(CONFIG_MAP, switch, "quarterdeck")

    def daemonsets(self) -> list[dict[str, Any]]:
        listed, _, _ = self.store.list(DAEMON_SET)
        return listed

    def owns(self, daemonset: dict[str, Any]) -> bool:
        owners = daemonset["metadata"].get("ownerReferences", [])
        return any(owner["uid"] == self.plan.object_uid for owner in owners)

    # Its rows

    def look(self) -> None:
        """Make the rows say what the cluster says now."""
        scope = WatchScope(gpu_nodes=set(NODES), operator_namespaces={"gpu-operator"})
        is_first = not self.versions
        for kind in JUDGED if is_first else MOVING:
            seen = {one.uid: one for page in client.list_pages(self.connection, kind.resource) for one in page.items}
            rows = {uid: row for uid, one in seen.items() if (row := kind.row(one, scope)) is not None}
            if gone := [uid for uid in self.versions if uid not in seen and self.versions[uid][0] == kind.name]:
                kind.rows_of(self.cluster.pk).filter(uid__in=gone).delete()
            new = []
            names = {column.name for column in kind.model._meta.get_fields()}
            for uid, row in rows.items():
                mark = (kind.name, seen[uid].resource_version)
                if self.versions.get(uid) == mark:
                    continue
                self.versions[uid] = mark
                given = row | {"resource_version": seen[uid].resource_version, "changed_at": self.clock()}
                kept = {key: value for key, value in given.items() if key in names}
                if is_first:
                    new.append(kind.model(cluster=self.cluster, uid=uid, **kept))
                else:
                    kind.model.objects.update_or_create(cluster=self.cluster, uid=uid, defaults=kept)
            kind.model.objects.bulk_create(new)
        Bookmark.objects.filter(cluster=self.cluster).update(last_seen_at=self.clock(), listed_at=self.clock())

    # The plan

    def draft(
        self, *, gates: dict[str, dict[str, Any]] = QUICK_GATES, max_unavailable: int = 1, canaries: int = 1
    ) -> Plan:
        given: dict[str, Any] = {"gate_options": gates, "max_unavailable": max_unavailable}
        canary = StageDraft("Canary", StageKind.CANARY, count=canaries, **given)
        rest = StageDraft("Rest", StageKind.POOL, **given)
        of = {"kind": "ClusterPolicy"} if self.is_by_policy else {"kind": "NVIDIADriver", "name": "h100"}
        self.plan = draft(
            cluster=self.cluster,
            title="",
            driver_object=self.cluster.driver_objects.get(**of),
            to_version=NEW,
            stages=[canary, rest],
            actor=self.ada,
            now=self.clock(),
        )
        return self.plan

    def start(self, **given: Any) -> Plan:
        self.draft(**given)
        start(self.plan, actor=self.ada, reason="It is time.", expected_revision=1, now=self.clock())
        self.plan.refresh_from_db()
        return self.plan

    def round(self, *, look: bool = True) -> Plan:
        if look:
            self.look()
        run_round(self.plan.pk, owner="worker-1", clock=self.clock)
        self.plan.refresh_from_db()
        self.clock.move(seconds=2)
        return self.plan

    def rounds(self, count: int) -> Plan:
        for _ in range(count):
            self.round()
        return self.plan

    def take_lease(self) -> Plan:
        """As a round does before it acts."""
        plan = Plan.objects.select_related("cluster").get(pk=self.plan.pk)
        assert plan.take_lease(owner="worker-1", now=self.clock())
        return plan

    def act(self, act: Any) -> Plan:
        """Carry one act out, in a round of its own."""
        plan = self.take_lease()
        carry_out(plan, act, self.connection, told=plan.commands.newest(), clock=self.clock)
        plan.end_lease(now=self.clock(), next_look_at=self.clock(), waiting_for="")
        self.plan.refresh_from_db()
        return self.plan

    def writer(self, *, asked: Mapping[str, Any] | None = None) -> Writer:
        plan = self.take_lease()
        return Writer(plan, self.connection, self.clock, plan.commands.newest(), asked)

    def armed(self, *, labels: Mapping[str, str] = NONE, labelled: Sequence[str] = NODES, **given: Any) -> Plan:
        """Held and written; the operator has queued every node, and the canary's first wave is the next round's.
        Those nodes have the labels before anything begins.

        On a ground that nobody has touched the first test of a process walks there, and the others go on from it.
        """
        way = repr((self.mode, MOVING, sorted(labels.items()), tuple(labelled), sorted(given.items())))
        is_as_made = self.state() == self.born
        if is_as_made and (armed := ARMED.get(way)):
            return self._take_up(armed)
        for name in labelled if labels else ():
            self.label(name, **labels)
        self.walk(**given)
        if is_as_made:
            ARMED[way] = self._armed()
        return self.plan

    def state(self) -> tuple[Rows, int, datetime]:
        return rows(), self.store.version, self.clock()

    def _armed(self) -> Armed:
        kept = Kept(rows(), objects(self.store), self.store.version, self.clock())
        return Armed(kept, self.cluster.pk, self.ada.pk, self.plan.pk, dict(self.versions))

    def _take_up(self, armed: Armed) -> Plan:
        """Only where the API server listens is this ground's own."""
        put_rows(armed.kept.rows, instead_of=self.born[0])
        Cluster.objects.filter(pk=armed.cluster_id).update(kubeconfig=self.cluster.kubeconfig)
        self.store.restore(armed.kept.objects, version=armed.kept.version)
        self.clock.at = armed.kept.at
        self.cluster = Cluster.objects.get(pk=armed.cluster_id)
        self.ada = User.objects.get(pk=armed.ada_id)
        self.plan = Plan.objects.get(pk=armed.plan_id)
        self.versions = dict(armed.versions)
        return self.plan

    def walk(self, **given: Any) -> Plan:
        """To an armed plan, every round of the way."""
        self.start(**given)
        self.rounds(3)
        for name in NODES:
            self.set_state(name, "upgrade-required")
        self.rounds(2)
        assert self.stage().state == StageState.PROMOTING, self.plan.waiting_for
        self.writes()
        return self.plan

    @contextmanager
    def case(self, name: object) -> Iterator[None]:
        """One of several cases of a test. An error names it, and afterwards rows, cluster and clock are as before."""
        kept, version = objects(self.store), self.store.version
        versions, at = dict(self.versions), self.clock()
        try:
            with transaction.atomic():
                yield
                transaction.set_rollback(True)
        except BaseException as error:
            error.add_note(f"The case is: {name}.")
            raise
        self.store.restore(kept, version=version)
        self.plan, self.versions, self.clock.at = Plan.objects.get(pk=self.plan.pk), versions, at
        self.writes()

    def stage(self, index: int = 0) -> Stage:
        return self.plan.stages.get(index=index)

    def target(self, name: str = CANARY) -> Target:
        return Target.objects.forward().get(stage__plan=self.plan, node_name=name)

    # What the API server was asked

    def writes(self) -> list[dict[str, Any]]:
        """Patches of nodes and driver objects since the last call."""
        client.server_version(
            self.connection
        )  # an answer is logged once it is sent: by the next one, the last ones are
        entries = self.simulation.log.since(self.read_until)
        if entries:
            self.read_until = entries[-1]["n"]
        return [one for one in entries if one["method"] == "PATCH"]

    def releases(self) -> list[str]:
        """Names of the nodes whose hold was taken off by us since the last call, refused tries left out."""
        place = "/metadata/labels/" + UPGRADE_SKIP.replace("/", "~1")
        return [
            one["path"].rsplit("/", 1)[-1]
            for one in self.writes()
            if one["code"] == 200 and {"op": "remove", "path": place} in one["body"]
        ]


def a_ground(simulation: Simulation, mode: Mode = Mode.NVIDIA_DRIVER) -> Ground:
    """The first of a process is planted and read, and the others put there as it was."""
    on = rows(), simulation.store.version
    planted = PLANTED.get(mode)
    if planted is None or planted.on != on:
        ground = _plant(simulation, mode)
        kept = Kept(rows(), objects(simulation.store), simulation.store.version, ground.clock())
        PLANTED[mode] = Planted(on, kept, ground.cluster.pk, ground.ada.pk, dict(ground.versions))
    else:
        ground = _put(simulation, mode, planted)
    ground.born = ground.state()
    return ground


def _plant(simulation: Simulation, mode: Mode) -> Ground:
    fleet = cluster_policy(nodes=6) if mode is Mode.CLUSTER_POLICY else small(nodes=6)
    Planting(StoreCluster(simulation.store), fleet, simulation.store.clock.now()).plant()
    simulation.store.create(NAMESPACE, {"metadata": {"name": "quarterdeck"}})
    uid = simulation.store.get(NAMESPACE, "kube-system")["metadata"]["uid"]
    row = {"uid": uid, "kubeconfig": str(Path(simulation.kubeconfig)), "context": "simulator", "approval": "none"}
    cluster = a_cluster("north", seen_at=None, **row)
    for kind in KINDS:
        a_bookmark(cluster, kind)
    connection = client.connect(cluster.kubeconfig, cluster.context)
    ground = Ground(simulation, cluster, a_user("ada", role="operator"), connection, mode=mode)
    ground.look()
    return ground


def _put(simulation: Simulation, mode: Mode, planted: Planted) -> Ground:
    """Only where the API server listens is this ground's own."""
    put_rows(planted.kept.rows, instead_of=planted.on[0])
    Cluster.objects.filter(pk=planted.cluster_id).update(kubeconfig=str(Path(simulation.kubeconfig)))
    simulation.store.restore(planted.kept.objects, version=planted.kept.version)
    cluster = Cluster.objects.get(pk=planted.cluster_id)
    connection = client.connect(cluster.kubeconfig, cluster.context)
    ada = User.objects.get(pk=planted.ada_id)
    return Ground(simulation, cluster, ada, connection, mode=mode, versions=dict(planted.versions))


__all__ = ["CANARY", "HELD_BY", "NEW", "NODES", "OLD", "REST", "UPGRADE_SKIP", "UPGRADE_STATE", "Ground", "a_ground"]
