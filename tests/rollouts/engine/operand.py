"""A second lever, for tests alone: the DCGM exporter of a ClusterPolicy whose operands are updated OnDelete.

`spec.daemonsets.updateStrategy: OnDelete` leaves the pods of every operand but the driver where they are until somebody
deletes them (gpu-operator, deployments/gpu-operator/values.yaml). Nothing holds a node, and nobody but us lets one go.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rollouts.checks import Check
from rollouts.commands import plan_start
from rollouts.commands.plan_drafts import draft
from rollouts.commands.stage_drafts import StageDraft
from rollouts.components.base import FieldPatch, NodeLabel, Phase, ReleaseAct, Unit
from rollouts.components.terms import HoldWords
from rollouts.components.throttle import Throttle
from rollouts.models import Command, Plan, Verb
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY
from simulator.kinds import CONTROLLER_REVISION, DAEMON_SET, POD
from tests.rollouts.engine.by_pod import BY_ITS_POD, DeletePod
from tests.rollouts.engine.ground import Ground

OLD, NEW = "4.2.3-4.1.1", "4.4.1-4.5.2"
HASH = {OLD: "exporter-old", NEW: "exporter-new"}
EXPORTER = "nvidia-dcgm-exporter"
OPERATOR = "gpu-operator"
GATES: dict[str, dict[str, Any]] = {"failure_budget": {}, "operands_ready": {}}


@dataclass(frozen=True)
class DcgmExporter:
    key: ClassVar[str] = "dcgm-exporter"
    kind: ClassVar[str] = "ClusterPolicy"
    path: ClassVar[tuple[str, ...]] = ("spec", "dcgmExporter", "version")
    unit: ClassVar[Unit] = Unit.NODE
    operand: ClassVar[str] = "dcgm-exporter"
    hold: ClassVar[NodeLabel | None] = None
    release: ClassVar[ReleaseAct] = DeletePod()
    room: ClassVar[Throttle | None] = None
    says: ClassVar[HoldWords] = BY_ITS_POD

    name: str

    def patch(self, old: str, new: str) -> FieldPatch:
        return FieldPatch(self.kind, self.name, self.path, old, new)

    def command(self, version: str) -> str:
        return f"kubectl patch clusterpolicy {self.name} --type=merge -p '{version}'"

    def template(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        given = spec.get("dcgmExporter") or {}
        return {f"dcgmExporter.{name}": value for name, value in given.items() if name != "version"}

    def phase(self, state: str, *, has_pod: bool = True, is_in_sync: bool = False) -> Phase:
        """Queued is who changes once its pod is deleted. The upgrade controller's word is about the driver."""
        if not has_pod:
            return Phase.AT_WORK
        return Phase.DONE if is_in_sync else Phase.QUEUED

    def is_released(self, *, has_label: bool, has_pod: bool, is_in_sync: bool) -> bool:
        return is_in_sync or not has_pod

    def has_changed(self, *, wanted: str, loaded: str, is_in_sync: bool) -> bool:
        return is_in_sync

    def no_rollback(self, version: str) -> str:
        return "" if version else "The object names no version."

    def preflight(self, facts: Any) -> Iterator[Check]:
        yield from ()

    def warnings(self, facts: Any) -> Iterator[Check]:
        yield from ()


@dataclass
class Exporters:
    """The cluster of a plan that changes them. What the operator and the DaemonSet controller do, a test says."""

    ground: Ground

    def __post_init__(self) -> None:
        self.ground.change_policy(dcgmExporter={"version": OLD}, daemonsets={"updateStrategy": "OnDelete"})
        self.daemonset = self.store.get(DAEMON_SET, EXPORTER, OPERATOR)
        self.made = 1
        for pod in self.pods():
            self.store.patch(
                POD, pod["metadata"]["name"], {"metadata": {"labels": {"controller-revision-hash": HASH[OLD]}}},
                OPERATOR, how="merge",
            )  # fmt: skip
        for revision in self.store.list(CONTROLLER_REVISION, OPERATOR)[0]:
            if self._owner(revision) == self.daemonset["metadata"]["uid"]:
                self.store.delete(CONTROLLER_REVISION, revision["metadata"]["name"], OPERATOR, grace_s=0)
        self._revise(OLD)

    @property
    def store(self):
        return self.ground.store

    def pods(self) -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.store.list(POD, OPERATOR)[0]
            if self._owner(pod) == self.daemonset["metadata"]["uid"]
        ]  # fmt: skip

    @staticmethod
    def _owner(one: dict[str, Any]) -> str:
        return next((owner["uid"] for owner in one["metadata"].get("ownerReferences", [])), "")

    def pod_on(self, name: str) -> dict[str, Any]:
        return next(pod for pod in self.pods() if pod["spec"]["nodeName"] == name)

    def nodes(self) -> list[str]:
        return sorted(pod["spec"]["nodeName"] for pod in self.pods())

    def version(self) -> str:
        return self.store.get(CLUSTER_POLICY, "cluster-policy")["spec"]["dcgmExporter"]["version"]

    def running(self, name: str) -> str:
        return self.pod_on(name)["metadata"]["labels"]["controller-revision-hash"]

    def touch(self, name: str) -> None:
        """As anybody does who writes something else of its pod, such as the kubelet its status."""
        pod = self.pod_on(name)["metadata"]["name"]
        self.store.patch(POD, pod, {"metadata": {"annotations": {"seen-by": "somebody"}}}, OPERATOR, how="merge")

    # What the operator and the controllers do

    def _revise(self, version: str) -> None:
        """The newest template is that of this version: an earlier one is found again, under a higher number."""
        name = f"{EXPORTER}-{HASH[version]}"
        self.made += 1
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": EXPORTER, "controller": True,
                 "uid": self.daemonset["metadata"]["uid"]}  # fmt: skip
        labels = {"controller-revision-hash": HASH[version]}
        metadata = {"name": name, "namespace": OPERATOR, "ownerReferences": [owner], "labels": labels}
        kept = [one["metadata"]["name"] for one in self.store.list(CONTROLLER_REVISION, OPERATOR)[0]]
        if name in kept:
            self.store.patch(CONTROLLER_REVISION, name, {"revision": self.made}, OPERATOR, how="merge")
        else:
            made = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata, "revision": self.made}
            self.store.create(CONTROLLER_REVISION, {**made, "data": {}}, OPERATOR)

    def follow(self) -> None:
        """The operator makes the template of the version that the policy names, and who has no pod gets one of it."""
        self._revise(self.version())
        for pod in self.pods():
            if pod["metadata"].get("deletionTimestamp"):
                self.remake(pod)

    def remake(self, pod: dict[str, Any], *, name: str = "") -> None:
        """It is gone, and there is another of the newest template. `name`: blank is a new one."""
        called = pod["metadata"]["name"]
        self.store.delete(POD, called, OPERATOR, grace_s=0)
        kept = {key: pod["metadata"][key] for key in ("labels", "ownerReferences")}
        kept["labels"] = kept["labels"] | {"controller-revision-hash": HASH[self.version()]}
        self.store.seed(POD, {**pod, "metadata": {**kept, "name": name or f"{called}-x"}}, OPERATOR)

    # The plan

    def plan(self, **given: Any) -> Plan:
        """Sealed as a start seals it, without what is looked at before one: that is of drivers."""
        ground = self.ground
        ground.look()
        canary = StageDraft("Canary", "canary", count=1, gate_options=GATES, **given)
        rest = StageDraft("Rest", "pool", gate_options=GATES, **given)
        policy = ground.cluster.driver_objects.get(kind="ClusterPolicy")
        plan = draft(
            cluster=ground.cluster, title="", driver_object=policy, to_version="580.126.20", stages=[canary, rest],
            actor=ground.ada, now=ground.clock(),
        )  # fmt: skip
        Plan.objects.filter(pk=plan.pk).update(component=DcgmExporter.key, from_version=OLD, to_version=NEW)
        plan = Plan.objects.select_related("cluster").get(pk=plan.pk)
        nodes = list(plan_start.nodes_of(plan).prefetch_related("pools"))
        picks = plan_start.pick(plan_start.forward(plan), nodes, now=ground.clock())
        asked = plan_start.AskedStart(ground.ada, "", "", 1, "")
        now, sealed = ground.clock(), plan_start._content(plan, picks)
        columns = {"sealed": sealed, "content_hash": plan_start.digest(sealed), "templates": {}}
        plan_start._seal(plan, asked, columns, now=now)
        plan_start.run_inserts(plan_start.compile_inserts(plan_start._targets(plan, picks, now=now)))
        plan_start.run_inserts(plan_start.compile_inserts(plan_start._holds(plan, nodes, now=now)))
        plan.move("holding", now=ground.clock(), actor="ada", reason="It is time.")
        Command.objects.create(plan=plan, verb=Verb.START, actor="ada", at=ground.clock(), reason="It is time.")
        ground.plan = plan
        return plan

    def rounds(self, count: int) -> Plan:
        for _ in range(count):
            self.ground.round()
            self.follow()
        return self.ground.plan

    def until(self, is_so, *, most: int = 60) -> Plan:
        for _ in range(most):
            if is_so():
                return self.ground.plan
            self.rounds(1)
        raise AssertionError(f"Still: {self.ground.plan.state}: {self.ground.plan.waiting_for}")

    # What the API server was asked

    def requests(self) -> list[dict[str, Any]]:
        """Writes since the last call."""
        self.ground.writes()
        return [one for one in self.ground.simulation.log.since(0) if one["method"] in {"PATCH", "DELETE"}]

    def deletes(self, *, code: int = 200) -> list[dict[str, Any]]:
        return [one for one in self.requests() if one["method"] == "DELETE" and one["code"] == code]

    def said(self) -> list[str]:
        """Every sentence of its history, and the last one."""
        plan = self.ground.plan
        return [*plan.events.values_list("reason", flat=True), plan.waiting_for]
