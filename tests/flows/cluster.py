"""The cluster as its owner sees it, through the official client: never through Quarterdeck, and not recorded."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubernetes import client, config, utils

from demo.visitor import wait_until
from tests.patience import PATIENCE_S

HOLD = "nvidia.com/gpu-driver-upgrade.skip"
UPGRADE_STATE = "nvidia.com/gpu-driver-upgrade-state"
LOADED = "nvidia.com/cuda.driver-version.full"
OWNER = "nvidia.com/gpu-operator.driver.owner"
OURS = "quarterdeck.io/"
JOBS = "quarterdeck.io/proves-for"
NAMESPACE = "quarterdeck"
STOP = "quarterdeck-stop"
DRIVERS = {"group": "nvidia.com", "version": "v1alpha1", "plural": "nvidiadrivers"}
POLICIES = {"group": "nvidia.com", "version": "v1", "plural": "clusterpolicies"}
POLICY = "cluster-policy"  # its name
IS_THERE = 409
IS_NOT_THERE = 404


class Cluster:
    def __init__(self, kubeconfig: Path, context: str) -> None:
        self._client = config.new_client_from_config(str(kubeconfig), context=context)
        self.core = client.CoreV1Api(self._client)
        self.leases = client.CoordinationV1Api(self._client)
        self.batch = client.BatchV1Api(self._client)
        self._custom = client.CustomObjectsApi(self._client)

    def close(self) -> None:
        self._client.close()

    def nodes(self, driver: str = "") -> list[client.V1Node]:
        """Every GPU node, or those of one NVIDIADriver, by name."""
        selector = f"{OWNER}={driver}" if driver else OWNER
        return sorted(self.core.list_node(label_selector=selector).items, key=lambda node: node.metadata.name)

    def names(self, driver: str) -> list[str]:
        return [node.metadata.name for node in self.nodes(driver)]

    def node(self, name: str) -> client.V1Node:
        return self.core.read_node(name)

    def loaded(self, driver: str) -> dict[str, str]:
        """Node → the driver it has loaded, from the node itself."""
        return {node.metadata.name: node.metadata.labels.get(LOADED, "") for node in self.nodes(driver)}

    def held(self, driver: str = "") -> set[str]:
        return {node.metadata.name for node in self.nodes(driver) if node.metadata.labels.get(HOLD) == "true"}

    def marked(self) -> set[str]:
        """Nodes that carry any label or annotation of Quarterdeck's, or the hold."""
        return {node.metadata.name for node in self.nodes() if marks(node)}

    def jobs_of(self, owner: str) -> list[str]:
        """Jobs of Quarterdeck's for a plan or an operation and their pods, in whichever namespace."""
        jobs = self.batch.list_job_for_all_namespaces(label_selector=f"{JOBS}={owner}").items
        pods = self.core.list_pod_for_all_namespaces(label_selector=f"{JOBS}={owner}").items
        return [f"{one.metadata.namespace}/{one.metadata.name}" for one in (*jobs, *pods)]

    def cordon(self, name: str, *, on: bool = True) -> None:
        self.core.patch_node(name, {"spec": {"unschedulable": on or None}})

    @contextmanager
    def cordoned(self, name: str) -> Iterator[None]:
        self.cordon(name)
        try:
            yield
        finally:
            self.cordon(name, on=False)

    def driver_of(self, node: client.V1Node) -> str:
        return str(node.metadata.labels[OWNER])

    def driver(self, name: str) -> dict[str, Any]:
        return dict(self._custom.get_cluster_custom_object(**DRIVERS, name=name))

    def version(self, name: str) -> str:
        return str(self.driver(name)["spec"]["version"])

    def change_driver(self, name: str, **spec: Any) -> None:
        self._custom.patch_cluster_custom_object(**DRIVERS, name=name, body={"spec": spec})

    @contextmanager
    def allowing(self, driver: str, unavailable: int | str, **more: int) -> Iterator[None]:
        """Let the operator have this many nodes of the object unavailable at once."""
        wanted = {"maxUnavailable": unavailable, **more}
        before = self.driver(driver)["spec"]["upgradePolicy"]
        self.change_driver(driver, upgradePolicy=wanted)
        try:
            yield
        finally:
            self.change_driver(driver, upgradePolicy={key: before[key] for key in wanted})

    @contextmanager
    def stopped(self, reason: str) -> Iterator[None]:
        """With the ConfigMap that stops everything."""
        metadata = client.V1ObjectMeta(name=STOP, namespace=NAMESPACE)
        self.core.create_namespaced_config_map(
            NAMESPACE, client.V1ConfigMap(metadata=metadata, data={"reason": reason})
        )
        try:
            yield
        finally:
            self.core.delete_namespaced_config_map(STOP, NAMESPACE)

    def take_lease(self, holder: str) -> None:
        """As another Quarterdeck would that drives this cluster."""
        spec = {"holderIdentity": holder, "renewTime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"}
        self.leases.patch_namespaced_lease(NAMESPACE, NAMESPACE, {"spec": spec})

    def drop_lease(self) -> None:
        """Where there is one."""
        try:
            self.leases.delete_namespaced_lease(NAMESPACE, NAMESPACE)
        except client.ApiException as refusal:
            if refusal.status != IS_NOT_THERE:
                raise

    @contextmanager
    def joined(self, like: str, name: str) -> Iterator[None]:
        """With one node more, of the same hardware and kernel as another one."""
        model = self.node(like)
        metadata = {
            "name": name,
            "labels": {key: value for key, value in model.metadata.labels.items() if is_of_the_machine(key)}
            | {"kubernetes.io/hostname": name},
            "annotations": {key: value for key, value in model.metadata.annotations.items() if "example.com" in key},
        }
        self.core.create_node({"metadata": metadata, "spec": {"providerID": f"metal://{name}"}})
        status = self._client.sanitize_for_serialization(model.status)
        for amounts in (status["capacity"], status["allocatable"]):
            amounts.pop("nvidia.com/gpu", None)  # there is no driver yet, so there is nothing to advertise
        self.core.patch_node_status(name, {"status": status})
        try:
            yield
        finally:
            self.core.delete_node(name)

    def apply(self, manifest: Path) -> None:
        """What is there already stays as it is."""
        try:
            utils.create_from_yaml(self._client, str(manifest))
        except utils.FailToCreateError as refusals:
            if any(refusal.status != IS_THERE for refusal in refusals.api_exceptions):
                raise

    def may(self, user: str, verb: str, resource: str) -> bool:
        """Whether somebody else may, in all namespaces."""
        asked = {"spec": {"resourceAttributes": {"verb": verb, "resource": resource}}}
        self._client.set_default_header("Impersonate-User", user)
        try:
            return bool(client.AuthorizationV1Api(self._client).create_self_subject_access_review(asked).status.allowed)
        finally:
            del self._client.default_headers["Impersonate-User"]

    def settle(self) -> None:
        """Take off what plans have left, and wait until the operator is through with every node."""
        for node in self.nodes():
            if found := marks(node):
                labels = {key: None for key in found if key in node.metadata.labels}
                notes = {key: None for key in found if key not in node.metadata.labels}
                self.core.patch_node(node.metadata.name, {"metadata": {"labels": labels, "annotations": notes}})
        wait_until(
            lambda: not self.unsettled(), what=lambda: f"a settled fleet: {self.unsettled()}", timeout_s=PATIENCE_S
        )
        # The operator leaves a node cordoned that was cordoned when its upgrade came due (nvidia.md 2.1).
        for node in self.nodes():
            if node.spec.unschedulable:
                self.cordon(node.metadata.name, on=False)

    def unsettled(self) -> list[str]:
        """What of the fleet is not in order."""
        wanted: dict[str, str] = {}
        found = []
        for node in self.nodes():
            labels, name = node.metadata.labels, node.metadata.name
            driver = self.driver_of(node)
            version = wanted.setdefault(driver, self.version(driver))
            if labels.get(LOADED) != version:
                found.append(f"{name} runs {labels.get(LOADED)}, not {version}")
            elif labels.get(UPGRADE_STATE) != "upgrade-done":
                found.append(f"{name} is {labels.get(UPGRADE_STATE)}")
        return found


class ByPolicy(Cluster):
    """Where the ClusterPolicy says the one driver version of all nodes."""

    def run_alone(self, name: str = "", replicas: int = 0) -> None:
        """Scale every ReplicaSet to 0, but for the one with this name."""
        apps = client.AppsV1Api(self._client)
        for one in apps.list_replica_set_for_all_namespaces().items:
            spec = {"replicas": replicas if one.metadata.name == name else 0}
            apps.patch_namespaced_replica_set(one.metadata.name, one.metadata.namespace, {"spec": spec})

    def gpu_pods(self) -> dict[str, int]:
        """Node → its pods of tenants that want GPUs and are Ready, where it has one."""
        pods = self.core.list_pod_for_all_namespaces(field_selector="status.phase=Running").items
        wanting = [
            pod.spec.node_name
            for pod in pods
            if any("nvidia.com/gpu" in (one.resources.limits or {}) for one in pod.spec.containers)
        ]
        return dict(Counter(wanting))

    def nodes(self, driver: str = "") -> list[client.V1Node]:
        found = self.core.list_node(label_selector="nvidia.com/gpu.present=true").items
        return sorted(found, key=lambda node: node.metadata.name)

    def driver_of(self, node: client.V1Node) -> str:
        return POLICY

    def driver(self, name: str) -> dict[str, Any]:
        policy = self._custom.get_cluster_custom_object(**POLICIES, name=name)
        return {**policy, "spec": policy["spec"]["driver"]}

    def change_driver(self, name: str, **spec: Any) -> None:
        self._custom.patch_cluster_custom_object(**POLICIES, name=name, body={"spec": {"driver": spec}})


def is_of_the_machine(label: str) -> bool:
    return not label.startswith("nvidia.com/") or label in {"nvidia.com/gpu.present", "nvidia.com/gpu.product"}


def marks(node: client.V1Node) -> set[str]:
    """What plans put on a node: the hold, and Quarterdeck's own annotations."""
    keys = {*(node.metadata.labels or {}), *(node.metadata.annotations or {})}
    return {key for key in keys if key == HOLD or key.startswith(OURS)}
