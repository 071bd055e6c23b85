"""What somebody does to the cluster when a plant begins, and when it ends: no fault of the simulator's."""

from dataclasses import dataclass
from typing import Protocol

from benchmarks.finding.day.stage import RUNTIME, Stage
from simulator.actors.gpu_operator import keys
from simulator.kinds import DEPLOYMENT


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
        """It goes on by itself."""


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
