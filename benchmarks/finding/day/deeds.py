"""What somebody does to the cluster when a plant begins, and when it ends: no fault of the simulator's."""

from dataclasses import dataclass
from typing import Protocol

from benchmarks.finding.day.stage import Stage
from simulator.actors.gpu_operator import keys


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
