"""What the operator writes on GPU nodes: which operands run there, and that upgrades are automatic."""

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.active import active_gpu_cluster, active_policy, has_driver_objects
from simulator.actors.gpu_operator.kinds import CLUSTER_POLICY, NVIDIA_DRIVER
from simulator.actors.gpu_operator.policy import read_policy
from simulator.actors.gpu_operator.release import Release
from simulator.actors.objects import Obj, annotations, generation, labels, name, spec
from simulator.actors.world import World
from simulator.kinds import NODE

PCI_PRESENT = "feature.node.kubernetes.io/pci-10de.present"
PREINSTALLED = "pre-installed"  # of gpu.deploy.driver, where the host brings its own
OPERANDS = (
    "driver",
    "container-toolkit",
    "device-plugin",
    "gpu-feature-discovery",
    "dcgm",
    "dcgm-exporter",
    "mig-manager",
    "node-status-exporter",
    "operator-validator",
)

DRA_OPERANDS = ("driver", "dra-driver", "dra-validator", "dcgm-exporter-dra")
ALLOCATION = "nvidia.com/gpu-operator.resource-allocation.mode"


class NodeLabels:
    def __init__(self, world: World, release: Release) -> None:
        self._world = world
        self._release = release
        world[NODE].on_change(self._node_changed)
        world[NVIDIA_DRIVER].on_change(self._policy_changed)
        world[CLUSTER_POLICY].on_change(self._policy_changed)

    def sync_all(self) -> None:
        for node in list(self._world[NODE].all()):
            self.sync(name(node))

    def sync(self, node_name: str) -> None:
        node = self._world[NODE].get(node_name)
        if node is None or labels(node).get(PCI_PRESENT) != "true":
            return
        wanted = self._labels(node)
        said = "true" if self._is_auto(node) else None
        patch: Obj = {}
        if wanted:
            patch["labels"] = wanted
        if annotations(node).get(keys.ENABLED) != said:
            patch["annotations"] = {keys.ENABLED: said}
        if patch:
            self._world.patch(NODE, node, {"metadata": patch})

    def _labels(self, node: Obj) -> dict[str, str | None]:
        """Only what is missing: a value that somebody else gave (paused, pre-installed, false) is left alone."""
        has = labels(node)
        if has.get(keys.DEPLOY_OPERANDS) == "false":
            return {keys.DEPLOY + operand: None for operand in OPERANDS if keys.DEPLOY + operand in has}
        wanted = {keys.PRESENT: "true"} | {keys.DEPLOY + operand: "true" for operand in self._operands()}
        if active_gpu_cluster(self._world) is not None:
            wanted[ALLOCATION] = "dra"
        return {key: value for key, value in wanted.items() if key not in has}

    def _operands(self) -> tuple[str, ...]:
        return DRA_OPERANDS if active_gpu_cluster(self._world) is not None else OPERANDS

    def _is_auto(self, node: Obj) -> bool:
        policy = active_policy(self._world)
        if not self._release.is_26_7 or not has_driver_objects(self._world):
            if policy is None:
                return False
            return read_policy((spec(policy).get("driver") or {}).get("upgradePolicy")).is_auto
        driver = self._world[NVIDIA_DRIVER].get(labels(node).get(keys.OWNER, ""))
        return driver is not None and read_policy(spec(driver).get("upgradePolicy")).is_auto

    def _node_changed(self, was: Obj | None, node: Obj | None) -> None:
        if node and (was is None or labels(was) != labels(node) or annotations(was) != annotations(node)):
            self._world.loop.soon(self.sync, name(node))

    def _policy_changed(self, was: Obj | None, policy: Obj | None) -> None:
        if was is None or policy is None or generation(was) != generation(policy):
            self._world.loop.soon(self.sync_all)
