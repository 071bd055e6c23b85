"""The operator's upgrade controller and the DaemonSet controller behind it, as small as they can be.

The simulator plays them whole, in seconds; a schedule has milliseconds. A step is one reconcile: a node moves one
state at most (k8s-operator-libs, pkg/upgrade).
"""

from dataclasses import dataclass, field
from typing import Any

from benchmarks.crashing.dra_driver import DraDriver
from benchmarks.crashing.jobs import Jobs
from benchmarks.crashing.line import Line
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.gpu_operator.policy_driver import policy_driver_set
from simulator.actors.gpu_operator.template import daemon_set, version_of
from simulator.actors.objects import Obj, annotations, is_unschedulable, labels, name, namespace, spec, uid
from simulator.actors.revisions import HASH_LABEL, frozen_template, hash_of, revision_of
from simulator.clock import stamp
from simulator.fleets.planting import OS_TAG
from simulator.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD
from simulator.store import Store

ME = "gpu-operator"
DRIVERS = f"{keys.COMPONENT}={keys.DRIVER_COMPONENT}"
IDLE = frozenset({"", "upgrade-done", "upgrade-required"})
NEXT = {"cordon-required": "pod-restart-required", "pod-restart-required": "uncordon-required"}
LOADED = ("driver.major", "driver.minor", "driver.rev")


@dataclass
class Operator:
    line: Line
    kind: str  # of the driver object
    called: str
    sick: set[str] = field(default_factory=set)  # nodes on which the new driver does not come up
    new_version: str = ""
    made: int = 0  # driver pods
    jobs: Jobs | None = None  # of test Jobs: their controller and kubelets go on with it
    kept_pod: Obj = field(default_factory=dict, repr=False)  # the last one: what the next is made like

    def __post_init__(self) -> None:
        self.dra = DraDriver(self.line)

    @property
    def store(self) -> Store:
        return self.line.store

    def driver_object(self) -> Obj:
        return self.store.get(CLUSTER_POLICY if self.kind == "ClusterPolicy" else NVIDIA_DRIVER, self.called)

    def driver_spec(self) -> dict[str, Any]:
        given = spec(self.driver_object())
        return given["driver"] if self.kind == "ClusterPolicy" else given

    def daemonset(self) -> Obj:
        owner = uid(self.driver_object())
        listed, _, _ = self.store.list(DAEMON_SET, keys.NAMESPACE, label_selector=DRIVERS)
        return next(each for each in listed if each["metadata"]["ownerReferences"][0]["uid"] == owner)

    def pods(self) -> dict[str, Obj]:
        """Node → its driver pod."""
        owner = uid(self.daemonset())
        listed, _, _ = self.store.list(POD, keys.NAMESPACE, label_selector=DRIVERS)
        return {spec(pod)["nodeName"]: pod for pod in listed if pod["metadata"]["ownerReferences"][0]["uid"] == owner}

    def nodes(self) -> dict[str, Obj]:
        """Those that the DaemonSet selects."""
        wanted = self.daemonset()["spec"]["template"]["spec"]["nodeSelector"].items()
        return {name(node): node for node in self.store.list(NODE)[0] if wanted <= labels(node).items()}

    def newest(self) -> str:
        owner = uid(self.daemonset())
        listed, _, _ = self.store.list(CONTROLLER_REVISION, keys.NAMESPACE)
        owned = [one for one in listed if one["metadata"]["ownerReferences"][0]["uid"] == owner]
        return hash_of(max(owned, key=lambda one: int(one["revision"])))

    # One reconcile

    def step(self) -> None:
        self._render()
        newest, pods, nodes = self.newest(), self.pods(), self.nodes()
        self.dra.collect()
        for called in nodes.keys() - pods.keys():  # it joined, or was taken up again
            pods[called] = self._make_pod(called, newest)
            self._load(called)
        for called in pods.keys() - nodes.keys():
            self.store.delete(POD, name(pods.pop(called)), keys.NAMESPACE, grace_s=0)
        policy = self.driver_spec()["upgradePolicy"]
        states = {called: labels(node).get(keys.STATE, "") for called, node in nodes.items()}
        busy = sum(state not in IDLE for state in states.values())
        free = policy["maxParallelUpgrades"] - busy
        limit = policy["maxUnavailable"]
        free = min(free, limit - sum(is_unschedulable(node) or not _is_ready(node) for node in nodes.values()))
        for called, node in nodes.items():
            free -= self._move(called, node, states[called], pods[called], newest, free)
        if self.jobs:
            self.jobs.step()

    def _move(self, called: str, node: Obj, state: str, pod: Obj, newest: str, free: int) -> int:
        """How many slots it took."""
        in_sync = labels(pod).get(HASH_LABEL) == newest
        if state in {"", "upgrade-done"}:
            to = "upgrade-done" if in_sync else "upgrade-required"
            if to != state:
                was_cordoned = {keys.WAS_CORDONED: "true"} if not in_sync and is_unschedulable(node) else {}
                self._patch(called, to, annotations=was_cordoned)
        elif state == "upgrade-required":
            if labels(node).get(keys.SKIP) == "true" or not (free > 0 or is_unschedulable(node)):
                return 0
            self._patch(called, "cordon-required")
            return 1
        elif state == "cordon-required":
            self._patch(called, NEXT[state], unschedulable=True)
        elif state in {"pod-restart-required", "upgrade-failed"}:
            self._restart(called, state, pod, newest, in_sync=in_sync)
        elif state == "uncordon-required":
            was_cordoned = annotations(node).get(keys.WAS_CORDONED) == "true"
            cordoned = {} if was_cordoned else {"unschedulable": False}
            self._patch(called, "upgrade-done", annotations={keys.WAS_CORDONED: None}, **cordoned)
        return 0

    def _restart(self, called: str, state: str, pod: Obj, newest: str, *, in_sync: bool) -> None:
        if not in_sync and state == "upgrade-failed":
            return  # only a change of its label gets it out of here
        if not in_sync:
            self.store.delete(POD, name(pod), keys.NAMESPACE, grace_s=0)
            self._make_pod(called, newest)
        if called in self.sick and version_of(self.daemonset()["spec"]["template"]["spec"]) == self.new_version:
            self._patch(called, "upgrade-failed", loaded="")
            self.dra.offer(called, "")
            return
        self._load(called)
        self._patch(called, "uncordon-required")

    def _load(self, called: str) -> None:
        """The newest driver, and whoever validates it. Where DRA offers the GPUs no label names it."""
        version = version_of(self.daemonset()["spec"]["template"]["spec"])
        if not self.dra.offer(called, version):
            self._patch(called, None, loaded=version)
        listed, _, _ = self.store.list(POD, keys.NAMESPACE, label_selector=f"app={keys.VALIDATOR_APP}")
        for pod in (one for one in listed if spec(one).get("nodeName") == called):
            self.store.delete(POD, name(pod), keys.NAMESPACE, grace_s=0)
            self._again(pod, called)

    def _patch(
        self, called: str, state: str | None, *, loaded: str | None = None, unschedulable: bool | None = None,
        annotations: dict[str, str | None] | None = None,
    ) -> None:  # fmt: skip
        changed: dict[str, Any] = {} if state is None else {keys.STATE: state}
        if loaded is not None:
            parts = loaded.split(".") if loaded else [None] * 3
            changed |= {f"nvidia.com/cuda.{key}": part for key, part in zip(LOADED, parts, strict=True)}
            changed["nvidia.com/cuda.driver-version.full"] = loaded or None
        body: dict[str, Any] = {"metadata": {"labels": changed}}
        if annotations:
            body["metadata"]["annotations"] = annotations
        if unschedulable is not None:
            body["spec"] = {"unschedulable": unschedulable or None}
        self.line.notify(ME, "PATCH", f"/api/v1/nodes/{called}", body)

    # The DaemonSet

    def _render(self) -> None:
        """The template follows the object in one step, and the controller says so in the next."""
        has, wanted = self.daemonset(), self._wanted()
        if annotations(has).get(keys.APPLIED_HASH) != annotations(wanted)[keys.APPLIED_HASH]:
            change = [
                {"op": "replace", "path": "/spec/template", "value": wanted["spec"]["template"]},
                {"op": "replace", "path": "/metadata/annotations", "value": annotations(wanted)},
            ]
            self._revise(self.store.patch(DAEMON_SET, name(has), change, namespace(has), how="json"))
        elif has["status"].get("observedGeneration") != has["metadata"]["generation"]:
            status = {"status": {"observedGeneration": has["metadata"]["generation"]}}
            self.store.patch(DAEMON_SET, name(has), status, namespace(has), how="merge", subresource="status")

    def _wanted(self) -> Obj:
        given = self.driver_object()
        if self.kind == "ClusterPolicy":
            return policy_driver_set(given, OS_TAG)
        return daemon_set(given, OS_TAG, has_owner_label=True)

    def _revise(self, has: Obj) -> None:
        """An older revision with the same template is used again, with the highest number."""
        listed, _, _ = self.store.list(CONTROLLER_REVISION, keys.NAMESPACE)
        known = [one for one in listed if one["metadata"]["ownerReferences"][0]["uid"] == uid(has)]
        newest = max(int(one["revision"]) for one in known)
        template = frozen_template(has)
        same = next((one for one in known if one["data"] == template), None)
        if same is None:
            self.store.create(CONTROLLER_REVISION, revision_of(has, newest + 1), keys.NAMESPACE)
        elif int(same["revision"]) < newest:
            self.store.patch(
                CONTROLLER_REVISION, name(same), {"revision": newest + 1}, keys.NAMESPACE, how="merge"
            )  # fmt: skip

    def _make_pod(self, called: str, newest: str) -> Obj:
        any_pod = next(iter(self.pods().values()), None) or self.kept_pod
        made = {**any_pod, "metadata": {**any_pod["metadata"]}}
        made["metadata"]["labels"] = {**labels(any_pod), HASH_LABEL: newest}
        return self._again(made, called)

    def _again(self, pod: Obj, called: str) -> Obj:
        """A pod like this one, begun now."""
        self.made += 1
        self.kept_pod = pod
        now = stamp(self.line.clock.now())
        kept = {key: pod["metadata"][key] for key in ("labels", "ownerReferences")}
        metadata = {**kept, "name": f"made-again-{self.made}", "creationTimestamp": now}
        status = {**pod["status"], "startTime": now}
        status["conditions"] = [{**one, "lastTransitionTime": now} for one in status.get("conditions", ())]
        status["containerStatuses"] = [
            {**one, "state": {"running": {"startedAt": now}}} for one in status.get("containerStatuses", ())
        ]
        made = {**pod, "metadata": metadata, "spec": {**spec(pod), "nodeName": called}, "status": status}
        return self.store.seed(POD, made, keys.NAMESPACE)


def _is_ready(node: Obj) -> bool:
    conditions = node.get("status", {}).get("conditions", ())
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
