"""Pods of one template fail on a node, or on one of its GPUs, and run elsewhere: the node is at fault.

If a node fails only one workload, something that only this workload does may be the cause. So it is a note while it
affects one pod.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from health.rules.base import NODE, NODES, PODS, NodeFacts, Severity, WorkloadHere, Wrong
from wording.numbers import count, either

NAMED = 2


@dataclass(frozen=True)
class WorkloadFailsHere:
    key: ClassVar[str] = "workload-fails-here"
    title: ClassVar[str] = "Workload fails only here"
    subject: ClassVar[str] = NODE
    reads: ClassVar[tuple[str, ...]] = (NODES, PODS)
    after: ClassVar[timedelta] = timedelta(minutes=5)  # the others have had as long to fail, too
    enough: int = 3  # that run elsewhere: of fewer it is anybody's guess
    one_in: int = 10  # that may fail elsewhere, too: of those that run there

    def evaluate(self, node: NodeFacts) -> Wrong | None:
        if node.is_changing or node.is_unreported:
            return None
        here = [each for each in node.workloads if self._is_the_nodes(each)]
        if not here:
            return None
        here.sort(key=lambda each: (-each.failing, each.name))
        more = len(here) - NAMED
        boards = {each.gpu for each in here}
        gpu = boards.pop() if len(boards) == 1 else None
        rest = f"; and so do those of {count(more, 'other workload')}" if more > 0 else ""
        is_one = sum(each.failing for each in here) == 1
        return Wrong(
            Severity.NOTE if is_one else Severity.WARNING,
            f"{'; '.join(_said(each, node.name) for each in here[:NAMED])}{rest}.",
            _action(node, is_one=is_one),
            {each.name: {"failing": each.failing, "tries": each.tries, "running": each.running, "gpu": each.gpu,
                         "failing_elsewhere": each.failing_elsewhere, "running_elsewhere": each.running_elsewhere,
                         "nodes_elsewhere": each.nodes_elsewhere} for each in here[:20]},
            why=f"{gpu} {'one' if is_one else ' '.join(sorted(each.name for each in here[:20]))}",
            probable_cause="" if is_one else f"The {'node' if gpu is None else 'GPU'}, not the workload.",
        )  # fmt: skip

    def _is_the_nodes(self, each: WorkloadHere) -> bool:
        others = each.running_elsewhere + (each.running if each.gpu is not None else 0)
        runs_beside = each.running > 0 and each.gpu is None
        return (
            each.failing > 0
            and not runs_beside
            and others >= self.enough
            and each.failing_elsewhere * self.one_in <= each.running_elsewhere
        )


def _said(each: WorkloadHere, node: str) -> str:
    place = node if each.gpu is None else f"GPU {each.gpu} of {node}"
    there = []
    if each.gpu is not None and each.running:
        there.append(f"{each.running} on its other GPUs")
    if each.running_elsewhere:
        there.append(f"{each.running_elsewhere} on {count(each.nodes_elsewhere, 'other node')}")
    others = each.running_elsewhere + (each.running if each.gpu is not None else 0)
    fails = f", where {each.failing_elsewhere} {either(each.failing_elsewhere, 'fails', 'fail')}, too"
    tries = f" in {each.tries} tries" if each.tries > each.failing else ""
    return (
        f"{count(each.failing, 'pod')} of {each.name} {either(each.failing, 'fails', 'fail')} on {place}{tries}, "
        f"and {others} of the same template {either(others, 'runs', 'run')}: {' and '.join(there)}"
        + (fails if each.failing_elsewhere else "")
    )


def _action(node: NodeFacts, *, is_one: bool) -> str:
    compared = "driver, kernel and Xids" if node.is_nvidias else "driver and kernel"
    first = "One pod proves little: delete it, and see whether the next one on another node runs. " if is_one else ""
    return (
        f"{first}Cordon the node, read the last log of a pod that failed (`kubectl logs --previous`), and compare the "
        f"node's {compared} with those of a node where it runs."
    )
