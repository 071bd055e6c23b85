"""ClusterPolicy runs the driver: one DaemonSet for the cluster, of one version (gpu-operator assets/state-driver)."""

from typing import Any

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.active import active_policy, uses_driver_crd
from simulator.actors.gpu_operator.applying import apply_set
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY
from simulator.actors.gpu_operator.template import daemon_set
from simulator.actors.kubelet.host import host_of
from simulator.actors.objects import Obj, generation, labels, name, owned_by, spec, uid
from simulator.actors.revisions import template_hash
from simulator.actors.world import World
from simulator.kinds import DAEMON_SET, NODE

APP = "nvidia-driver-daemonset"
LABELS = {"app": APP, keys.COMPONENT: keys.DRIVER_COMPONENT}


def policy_driver_set(policy: Obj, os_tag: str) -> Obj:
    """As for an NVIDIADriver, but under one name, for every GPU node that has no driver of its own."""
    driver: dict[str, Any] = {"metadata": policy["metadata"], "spec": spec(policy)["driver"]}
    made = daemon_set(driver, os_tag, has_owner_label=False)
    template = made["spec"]["template"]
    precompiled = str(bool(driver["spec"].get("usePrecompiled"))).lower()
    template["metadata"]["labels"] = {**LABELS, "nvidia.com/precompiled": precompiled}
    template["spec"] |= {"nodeSelector": {keys.DEPLOY_DRIVER: "true"}, "serviceAccountName": "nvidia-driver"}
    metadata = {
        "name": APP,
        "namespace": keys.NAMESPACE,
        "labels": LABELS,
        "annotations": {keys.APPLIED_HASH: template_hash(template)},
        "ownerReferences": [owned_by(policy, api_version="nvidia.com/v1", kind="ClusterPolicy")],
    }
    return {**made, "metadata": metadata, "spec": {**made["spec"], "selector": {"matchLabels": {"app": APP}}}}


def runs_driver(policy: Obj | None) -> bool:
    if policy is None or uses_driver_crd(policy):
        return False
    driver = spec(policy).get("driver") or {}
    return bool(driver.get("enabled", True) and driver.get("version"))


class PolicyDriver:
    def __init__(self, world: World) -> None:
        self._world = world
        world[CLUSTER_POLICY].on_change(self._policy_changed)
        world[NODE].on_change(self._node_changed)

    def reconcile(self) -> None:
        policy = active_policy(self._world)
        if policy is None:
            return
        if runs_driver(policy):
            apply_set(self._world, policy_driver_set(policy, self._os_tag()))
            return
        for driver_set in self._world[DAEMON_SET].by("controller", uid(policy)):
            if name(driver_set) == APP:
                self._world.delete(DAEMON_SET, driver_set)

    def _os_tag(self) -> str:
        """Of the first GPU node: this mode knows only one operating system."""
        nodes = (node for node in self._world[NODE].all() if labels(node).get(keys.PRESENT) == "true")
        first = next(nodes, None)
        return host_of(first).os_tag if first else ""

    def _policy_changed(self, was: Obj | None, policy: Obj | None) -> None:
        if was is None or policy is None or generation(was) != generation(policy):
            self._world.loop.soon(self.reconcile)

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        """The first GPU node may be what the set waits for."""
        if was is None and node is not None and labels(node).get(keys.PRESENT) == "true":
            self._world.loop.soon(self.reconcile)
