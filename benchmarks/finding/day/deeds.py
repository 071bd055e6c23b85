"""What somebody does to the cluster when a plant begins, and when it ends: no fault of the simulator's."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from benchmarks.finding.day.stage import AWAITED, EVERYBODY, RUNTIME, TORCH, Obj, Stage
from simulator.actors import mig
from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.node.mig_manager import PAUSED
from simulator.actors.gpu_operator.states import UpgradeState
from simulator.actors.kubelet.host import MIG_CONFIG
from simulator.actors.objects import labels
from simulator.actors.sharing import CONFIG_LABEL
from simulator.fleets.plan import INSTANCE_TYPE
from simulator.kinds import DEPLOYMENT, DISRUPTION_BUDGET, JOB, POD, REPLICA_SET, RESOURCE_QUOTA, Kind

TEAM = "pretraining"
VALIDATOR = keys.DEPLOY + "operator-validator"


class Deed(Protocol):
    def begin(self, stage: Stage) -> None: ...

    def end(self, stage: Stage) -> None: ...


@dataclass(frozen=True)
class LetGo:
    """The hold of a node is taken off, as a plan does it: the operator then gives it the new driver."""

    node: str

    def begin(self, stage: Stage) -> None:
        stage.label(self.node, keys.SKIP, None)

    def end(self, stage: Stage) -> None:
        """It goes on by itself; where it was given up somebody asks for it once more, as the operator's manual says."""
        if stage.upgrade_state(self.node) == UpgradeState.FAILED:
            stage.label(self.node, keys.STATE, str(UpgradeState.REQUIRED))


@dataclass(frozen=True)
class WithoutValidator:
    """Somebody has switched the validator off there, and forgot it."""

    node: str

    def begin(self, stage: Stage) -> None:
        stage.label(self.node, VALIDATOR, "false")

    def end(self, stage: Stage) -> None:
        stage.label(self.node, VALIDATOR, "true")


@dataclass(frozen=True)
class Cordon:
    """Somebody cordons it before its driver is changed, which the operator notes when it looks at it anew."""

    node: str

    def begin(self, stage: Stage) -> None:
        stage.cordon(self.node, is_on=True)
        stage.label(self.node, keys.STATE, None)

    def end(self, stage: Stage) -> None:
        """And again: what it was cordoned for is not over."""
        stage.cordon(self.node, is_on=True)


@dataclass(frozen=True)
class OneAtATime:
    """Somebody lets one node of a driver be away at a time, and another of them is cordoned: it is that one."""

    driver: str
    other: str

    def begin(self, stage: Stage) -> None:
        stage.cordon(self.other, is_on=True)
        stage.upgrade_policy(self.driver, {"maxUnavailable": 1})

    def end(self, stage: Stage) -> None:
        stage.cordon(self.other, is_on=False)
        stage.upgrade_policy(self.driver, {"maxUnavailable": EVERYBODY})


class Stubborn(StrEnum):
    """Why a pod does not go before its node's driver is changed."""

    ALONE = "alone"  # no controller makes it again
    FILES = "files"  # it keeps files on the node
    BUDGET = "budget"  # a PodDisruptionBudget allows no disruption
    AWAITED = "awaited"  # it is one of those that the operator is told to wait for


@dataclass(frozen=True)
class StubbornPod:
    """Somebody runs one on a GPU of the node."""

    node: str
    how: Stubborn

    @property
    def name(self) -> str:
        return f"{self.how}-on-{self.node}"

    def begin(self, stage: Stage) -> None:
        if self.how is Stubborn.ALONE:
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": self._metadata(), **self._template()}
            stage.store.create(POD, pod, TEAM)
            return
        replica_set = {
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": self._metadata(),
            "spec": {"replicas": 1, "selector": {"matchLabels": self._labels()},
                     "template": {"metadata": {"labels": self._labels()}, **self._template()}},
        }  # fmt: skip
        stage.store.create(REPLICA_SET, replica_set, TEAM)
        if self.how is Stubborn.BUDGET:
            spec = {"maxUnavailable": 0, "selector": {"matchLabels": self._labels()}}
            budget = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": self._metadata(),
                "spec": spec,
            }
            stage.store.create(DISRUPTION_BUDGET, budget, TEAM)

    def end(self, stage: Stage) -> None:
        if self.how is Stubborn.BUDGET:
            stage.store.delete(DISRUPTION_BUDGET, self.name, TEAM)
        if self.how is Stubborn.ALONE:
            stage.store.delete(POD, self.name, TEAM)
        else:
            stage.store.delete(REPLICA_SET, self.name, TEAM)

    def _metadata(self) -> Obj:
        return {"name": self.name, "namespace": TEAM, "labels": self._labels()}

    def _labels(self) -> dict[str, str]:
        labels = {"app.kubernetes.io/name": self.name}
        return labels | AWAITED if self.how is Stubborn.AWAITED else labels

    def _template(self) -> Obj:
        resources = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}
        container = {"name": "main", "image": TORCH, "resources": {"limits": resources, "requests": resources}}
        spec: Obj = {
            "priority": 10**6,  # who is in its way has to go
            "nodeSelector": {"kubernetes.io/hostname": self.node}, "containers": [container],
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        }  # fmt: skip
        if self.how is Stubborn.FILES:
            spec["volumes"] = [{"name": "scratch", "emptyDir": {}}]
        return {"spec": spec}


@dataclass(frozen=True)
class After:
    """One thing, and another some time later: an upgrade is let go when the pod in its way runs."""

    seconds: float
    deed: Deed

    def begin(self, stage: Stage) -> None:
        stage.later(self.seconds, lambda: self.deed.begin(stage))

    def end(self, stage: Stage) -> None:
        self.deed.end(stage)


@dataclass(frozen=True)
class RestartExporter:
    node: str

    def begin(self, stage: Stage) -> None:
        stage.restart_exporter(self.node)

    def end(self, stage: Stage) -> None:
        """Its DaemonSet has made another long ago."""


@dataclass(frozen=True)
class SwitchOperatorOff:
    """Somebody scales it down, and up again later."""

    def begin(self, stage: Stage) -> None:
        self._scale(stage, 0)

    def end(self, stage: Stage) -> None:
        self._scale(stage, 1)

    def _scale(self, stage: Stage, replicas: int) -> None:
        patch = {"spec": {"replicas": replicas}}
        stage.store.patch(DEPLOYMENT, "gpu-operator", patch, how="merge", namespace=keys.NAMESPACE)


@dataclass(frozen=True)
class OldRuntime:
    """A node comes back from an image of last year, with a containerd that is too old for the toolkit's NRI plugin."""

    node: str
    says: str = "containerd://1.7.24"

    def begin(self, stage: Stage) -> None:
        stage.run_on(self.node, self.says)

    def end(self, stage: Stage) -> None:
        stage.run_on(self.node, RUNTIME)


@dataclass(frozen=True)
class CutGpus:
    """Somebody wants the GPUs of a node cut; later they want them whole again, and start what stayed paused."""

    node: str
    config: str = "all-1g.10gb"

    def begin(self, stage: Stage) -> None:
        stage.label(self.node, MIG_CONFIG, self.config)

    def end(self, stage: Stage) -> None:
        stage.label(self.node, MIG_CONFIG, mig.ALL_DISABLED)
        for key in [key for key, value in labels(stage.node(self.node)).items() if value == PAUSED]:
            stage.label(self.node, key, "true")


@dataclass(frozen=True)
class ShareGpus:
    """Somebody has the GPUs of a node shared in turns, with the pods that have them running on."""

    node: str
    config: str = "time-slicing-4"

    def begin(self, stage: Stage) -> None:
        stage.label(self.node, CONFIG_LABEL, self.config)

    def end(self, stage: Stage) -> None:
        stage.label(self.node, CONFIG_LABEL, None)


@dataclass(frozen=True)
class StartWork:
    """Somebody starts work in a namespace with a quota: pods of so many GPUs, for nodes that are yet to be bought."""

    kind: Kind
    where: str
    name: str
    quota: int  # GPUs that the namespace may have
    pods: int
    gpus: int  # of each pod

    def begin(self, stage: Stage) -> None:
        hard = {"requests.nvidia.com/gpu": str(self.quota)}
        quota = {"metadata": {"name": "gpus", "namespace": self.where}, "spec": {"hard": hard}}
        stage.store.create(RESOURCE_QUOTA, quota, self.where)
        owner = {"metadata": {"name": self.name, "namespace": self.where}, "spec": self._spec()}
        stage.store.create(self.kind, owner, self.where)

    def end(self, stage: Stage) -> None:
        stage.store.delete(self.kind, self.name, self.where)
        stage.store.delete(RESOURCE_QUOTA, "gpus", self.where)

    def _spec(self) -> Obj:
        named = {"app.kubernetes.io/name": self.name}
        resources = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": str(self.gpus)}
        container = {"name": "main", "image": TORCH, "resources": {"limits": resources, "requests": resources}}
        pod: Obj = {"nodeSelector": {INSTANCE_TYPE: "gpu.b300x8"}, "containers": [container]}
        if self.kind is JOB:
            pod |= {"restartPolicy": "Never"}
            return {"parallelism": self.pods, "completions": self.pods, "template": {"spec": pod}}
        template = {"metadata": {"labels": named}, "spec": pod}
        return {"replicas": self.pods, "selector": {"matchLabels": named}, "template": template}
