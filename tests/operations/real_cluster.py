"""A real kube-apiserver with nodes that nobody runs: the test is their kubelet and their scheduler.

The objects are written through the official client, never through Quarterdeck. Where a kube-controller-manager runs, it
makes the pods of ReplicaSets and the status of budgets; else the test writes both, as its controllers would.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kubernetes import client as official
from kubernetes import config

from demo.visitor import wait_until
from fleet.models import Cluster, Node
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.mirror.watch_scope import WatchScope
from kube import client
from operations.models import Operation, OperationNode
from operations.operation_round import run_operation
from tests import make
from tests.patience import PATIENCE_S

GPUS = {"nvidia.com/gpu": "8"}
OURS = {"test.quarterdeck.io/real": "true"}
CONTAINER = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
ROWS = ("nodes", "pods", "poddisruptionbudgets.policy")
NODE_INFO = (
    "architecture", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "kubeletVersion", "machineID",
    "operatingSystem", "osImage", "systemUUID",
)  # fmt: skip
TTL = "node.alpha.kubernetes.io/ttl"  # of the TTL controller, some time after the node is made
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
ABSENT, CONFLICT = 404, 409
FRESH = timedelta(minutes=1)


@dataclass
class Clock:
    """Real time, plus what a test lets pass: the API server's own times are real."""

    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def move(self, **given: float) -> None:
        self.ahead += timedelta(**given)


@dataclass
class RealCluster:
    kubeconfig: Path  # of the owner
    ours: Path  # of our account alone
    cluster: Cluster
    clock: Clock = field(default_factory=Clock)
    namespaces: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api = config.new_client_from_config(str(self.kubeconfig))
        self.core, self.apps = official.CoreV1Api(self.api), official.AppsV1Api(self.api)
        self.policy, self.batch = official.PolicyV1Api(self.api), official.BatchV1Api(self.api)
        lease = self._answer(
            official.CoordinationV1Api(self.api).read_namespaced_lease, "kube-controller-manager", "kube-system"
        )
        self.has_controllers = lease is not None and datetime.now(UTC) - lease.spec.renew_time < FRESH

    # Its nodes

    def node(self, name: str, **labels: str) -> str:
        """Makes a Ready GPU node, and returns its name."""
        labels = {"kubernetes.io/hostname": name, "nvidia.com/gpu.present": "true", **OURS, **labels}
        self.core.create_node({"metadata": {"name": name, "labels": labels}})
        self.report(name)
        # The admission plugin TaintNodesByCondition adds it to each new node; with a lifecycle controller it goes.
        self.core.patch_node(name, {"spec": {"taints": None}})
        return name

    def report(self, name: str, *, ready: str = "True", boot_id: str = "first") -> None:
        now = datetime.now(UTC).isoformat()
        heard = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        condition = {"type": "Ready", "status": ready, "reason": "Kubelet", "message": "", **heard}
        status = {"conditions": [condition], "allocatable": GPUS, "capacity": GPUS}
        self.core.patch_node_status(
            name, {"status": status | {"nodeInfo": dict.fromkeys(NODE_INFO, "") | {"bootID": boot_id}}}
        )

    def state(self, name: str) -> dict[str, Any]:
        """Returns metadata and spec of a node, without what its controllers write: the taint of a cordon, and a TTL."""
        read = self.api.sanitize_for_serialization(self.core.read_node(name))
        metadata = {key: read["metadata"].get(key) for key in ("uid", "labels", "annotations", "finalizers")}
        annotations = metadata["annotations"] or {}  # none at all, until a controller writes its first one
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != TTL}
        taints = [taint for taint in read["spec"].pop("taints", ()) if taint["key"] != UNSCHEDULABLE]
        return {"metadata": metadata, "spec": read["spec"], "taints": taints}

    def is_cordoned(self, name: str) -> bool:
        return bool(self.core.read_node(name).spec.unschedulable)

    def cordon(self, name: str, *, on: bool = True) -> None:
        """As kubectl cordon and uncordon do: the field alone."""
        self.core.patch_node(name, {"spec": {"unschedulable": on or None}})

    def remake(self, name: str) -> None:
        self.core.delete_node(name)
        self.node(name)

    # Its pods

    def namespace(self, name: str) -> str:
        self._answer(self.core.create_namespace, {"metadata": {"name": name, "labels": OURS}}, but=CONFLICT)
        self.namespaces.append(name)
        return name

    def replicas(self, namespace: str, name: str, *nodes: str, ready: bool = True, **spec: Any) -> list[str]:
        """Makes a ReplicaSet with one running pod for each node, and returns the pods' names."""
        template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [CONTAINER], **spec}}
        wanted = {"replicas": len(nodes), "selector": {"matchLabels": {"app": name}}, "template": template}
        self.apps.create_namespaced_replica_set(namespace, {"metadata": {"name": name}, "spec": wanted})
        return [self.replica(namespace, name, node, ready=ready) for node in nodes]

    def replica(self, namespace: str, name: str, node: str, *, ready: bool = True) -> str:
        """Runs one more pod of a ReplicaSet on the node, and returns its name."""
        if not self.has_controllers:
            owner = self.apps.read_namespaced_replica_set(name, namespace)
            reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": owner.metadata.uid}
            metadata = {
                "generateName": f"{name}-",
                "labels": {"app": name},
                "ownerReferences": [reference | {"controller": True}],
            }
            self.core.create_namespaced_pod(namespace, {"metadata": metadata, "spec": owner.spec.template.spec})
        self.wait(lambda: bool(self.waiting(namespace, name)), f"a pod of {name}")
        return self.run(namespace, self.waiting(namespace, name)[0], node, ready=ready)

    def rank(self, namespace: str, job: str, number: int, node: str) -> str:
        """Runs one pod of a job on the node, as its controller, the scheduler and the kubelet do."""
        reference = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": job, "uid": f"uid-of-{job}"}
        name = f"{job}-{number}"
        metadata = {"name": name, "ownerReferences": [reference | {"controller": True}]}
        body = {"metadata": metadata, "spec": {"containers": [CONTAINER]}}
        self.core.create_namespaced_pod(namespace, body)
        return self.run(namespace, name, node)

    def waiting(self, namespace: str, app: str) -> list[str]:
        """Returns the names of pods without a node."""
        listed = self.core.list_namespaced_pod(namespace, label_selector=f"app={app}").items
        return [pod.metadata.name for pod in listed if not pod.spec.node_name and not pod.metadata.deletion_timestamp]

    def run(self, namespace: str, pod: str, node: str, *, ready: bool = True, phase: str = "Running") -> str:
        """Binds a pod as the scheduler does, and reports it as its kubelet does."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"metadata": {"name": pod}, "target": target}
        self.core.create_namespaced_binding(namespace, body, _preload_content=False)
        self.report_pod(namespace, pod, ready=ready, phase=phase)
        return pod

    def report_pod(self, namespace: str, pod: str, *, ready: bool = True, phase: str = "Running", **more: Any) -> None:
        now = datetime.now(UTC).isoformat()
        conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": now}]
        status = {"phase": phase, "conditions": conditions, "startTime": now, **more}
        self.core.patch_namespaced_pod_status(pod, namespace, {"status": status})

    def pods(self, namespace: str, node: str = "") -> dict[str, bool]:
        """Returns whether each pod is being deleted, by name."""
        where = {"field_selector": f"spec.nodeName={node}"} if node else {}
        listed = self.core.list_namespaced_pod(namespace, **where).items
        return {pod.metadata.name: pod.metadata.deletion_timestamp is not None for pod in listed}

    def asked(self, namespace: str) -> list[str]:
        """Returns the names of pods that are being deleted."""
        return sorted(name for name, is_going in self.pods(namespace).items() if is_going)

    def end_pods(self, namespace: str) -> list[str]:
        """Ends evicted pods as their kubelets do, and returns their names."""
        ended = self.asked(namespace)
        for name in ended:
            self._answer(self.core.delete_namespaced_pod, name, namespace, body={"gracePeriodSeconds": 0})
        return ended

    # Its budgets

    def budget(self, namespace: str, name: str, *, app: str, covers: int, **spec: Any) -> None:
        """Makes a budget, and waits until its controller has counted `covers` pods."""
        body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
        self.policy.create_namespaced_pod_disruption_budget(namespace, body)
        self.count(namespace, name)
        self.wait(lambda: self._budget(namespace, name).status.expected_pods == covers, f"the status of {name}")

    def count(self, namespace: str, name: str) -> None:
        """Writes the status of a budget, as the disruption controller does. It runs there: nothing to write."""
        if self.has_controllers:
            return
        budget = self._budget(namespace, name)
        app = budget.spec.selector.match_labels["app"]
        listed = self.core.list_namespaced_pod(namespace, label_selector=f"app={app}").items
        wanted = self.apps.read_namespaced_replica_set(app, namespace).spec.replicas
        healthy = sum(_is_healthy(pod) for pod in listed)
        needed = _needed(budget.spec, wanted)
        status = {
            "observedGeneration": budget.metadata.generation, "expectedPods": wanted, "currentHealthy": healthy,
            "desiredHealthy": needed, "disruptionsAllowed": max(0, healthy - needed),
        }  # fmt: skip
        self.policy.patch_namespaced_pod_disruption_budget_status(name, namespace, {"status": status})

    def wait_for_budget(self, namespace: str, name: str, *, allowed: int) -> None:
        self.count(namespace, name)
        self.wait(
            lambda: self._budget(namespace, name).status.disruptions_allowed == allowed, f"{allowed} allowed by {name}"
        )

    def _budget(self, namespace: str, name: str):
        return self.policy.read_namespaced_pod_disruption_budget(name, namespace)

    # Quarterdeck

    def look(self) -> None:
        """Makes the rows say what the cluster says now, by the mirror's own columns."""
        scope = WatchScope(gpu_nodes=set(self._names()))
        with closing(client.connect(str(self.ours), self.cluster.context)) as connection:
            for kind in (KINDS[name] for name in ROWS):
                there = [one for page in client.list_pages(connection, kind.resource) for one in page.items]
                rows = {one.uid: row for one in there if (row := kind.row(one, scope)) is not None}
                kind.rows_of(self.cluster.pk).exclude(uid__in=rows).delete()
                columns = {column.name for column in kind.model._meta.get_fields()}
                for one in there:
                    if one.uid in rows:
                        row = rows[one.uid] | {"resource_version": one.resource_version, "changed_at": self.clock()}
                        defaults = {key: value for key, value in row.items() if key in columns}
                        kind.model.objects.update_or_create(cluster=self.cluster, uid=one.uid, defaults=defaults)

    def rounds(self, operation: Operation, number: int = 1) -> Operation:
        for _ in range(number):
            self.clock.move(seconds=30)
            run_operation(operation.pk, owner="worker", clock=self.clock)
        return Operation.objects.get(pk=operation.pk)

    def row(self, name: str) -> Node:
        return Node.objects.get(cluster=self.cluster, name=name)

    def _names(self) -> Iterator[str]:
        for node in self.core.list_node(label_selector=_selector()).items:
            yield node.metadata.name

    def wait(self, look: Callable[[], bool], what: str) -> None:
        wait_until(look, what=what, timeout_s=PATIENCE_S)

    def empty(self) -> None:
        """Leaves nothing behind."""
        for node in list(self._names()):
            self._answer(self.core.delete_node, node)
        self.batch.delete_collection_namespaced_job(
            "gpu-operator", label_selector="quarterdeck.io/proof", propagation_policy="Background"
        )
        for namespace in self.namespaces:
            for replica_set in self.apps.list_namespaced_replica_set(namespace).items:
                self._answer(self.apps.delete_namespaced_replica_set, replica_set.metadata.name, namespace)
            for pod in self.pods(namespace):
                self._answer(self.core.patch_namespaced_pod, pod, namespace, {"metadata": {"finalizers": None}})
                self._answer(self.core.delete_namespaced_pod, pod, namespace, body={"gracePeriodSeconds": 0})
            self.policy.delete_collection_namespaced_pod_disruption_budget(namespace)
            self._answer(self.core.delete_namespace, namespace)
        self.api.close()

    def _answer(self, ask: Callable[..., Any], *words: Any, but: int = ABSENT, **given: Any) -> Any:
        """Returns the answer. None: the API server answered with the expected refusal."""
        try:
            return ask(*words, **given)
        except official.ApiException as refusal:
            if refusal.status != but:
                raise
            return None


def _selector() -> str:
    return ",".join(f"{key}={value}" for key, value in OURS.items())


def _is_healthy(pod: official.V1Pod) -> bool:
    conditions = {one.type: one.status for one in pod.status.conditions or ()}
    return pod.metadata.deletion_timestamp is None and conditions.get("Ready") == "True"


def _needed(spec: official.V1PodDisruptionBudgetSpec, wanted: int) -> int:
    """Returns the healthy pods that a budget needs: percentages are rounded up (disruption controller)."""
    if spec.min_available is not None:
        return _share(spec.min_available, wanted)
    return max(0, wanted - _share(spec.max_unavailable, wanted))


def _share(given: int | str, of: int) -> int:
    return (
        -(-of * int(given.removesuffix("%")) // 100) if isinstance(given, str) and given.endswith("%") else int(given)
    )


def a_real_cluster(kubeconfig: Path, ours: Path, *, context: str) -> RealCluster:
    owner = config.new_client_from_config(str(kubeconfig))
    uid = official.CoreV1Api(owner).read_namespace("kube-system").metadata.uid
    owner.close()
    cluster = make.a_cluster("real", uid=uid, kubeconfig=str(ours), context=context)
    return RealCluster(kubeconfig, ours, cluster)


def node_of(operation: Operation) -> OperationNode:
    return operation.nodes.get()
