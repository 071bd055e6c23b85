"""The GPUs of one node for its page: layout, amounts and users."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from fleet.allocation.allocations import Board, Unplaced
from fleet.allocation.physical import physical_of
from fleet.models import Node, Pod
from fleet.pod_reasons import PodReason, reasons_of
from fleet.queries import NodeInDetail
from fleet.states.pod import ENDED
from fleet.web.states import PodWord, word_of
from gpu import labels as keys
from gpu.resources import (
    Explanation,
    Layout,
    ResourceKind,
    ResourceLine,
    Way,
    explain,
    gpu_groups,
    in_words,
)


@dataclass
class WayOnNode:
    """One kind of unit on the node, with its users."""

    kind: ResourceKind
    sharing: str
    explanation: Explanation
    parts: list[ResourceLine] = field(default_factory=list)
    pods: list[Pod] = field(default_factory=list)

    @property
    def expected(self) -> int:
        """Returns the expected units including missing ones, without duplicates."""
        return sum(part.to_be_had + part.missing for part in self.parts if not part.is_second)

    @property
    def missing(self) -> int:
        return sum(part.missing or 0 for part in self.parts if not part.is_second)

    @property
    def requested(self) -> int:
        return sum(part.requested or 0 for part in self.parts)

    @property
    def profiles(self) -> list[ResourceLine]:
        return [part for part in self.parts if part.way.profile]


@dataclass(frozen=True)
class Sickness:
    """A fault of one GPU. `rank` 0 is the worst."""

    rank: int
    glyph: str
    sentence: str
    href: str = ""


# Of apps above: known faults of a node's GPUs by index. Called with UUIDs by index.
SICKNESSES: list[Callable[[Node, Mapping[int, str]], Iterable[tuple[int, Sickness]]]] = []
TAINTED = 1  # rank of tainted or unhealthy GPUs


@dataclass(frozen=True)
class BoardOnPage:
    board: Board
    sicknesses: tuple[Sickness, ...]

    @property
    def rank(self) -> int:
        """Returns the worst rank; healthy GPUs come last."""
        return min((one.rank for one in self.sicknesses), default=99)


@dataclass(frozen=True)
class PodLine:
    pod: Pod
    allocated: str  # as text; blank: no GPU, or finished
    seen: PodWord
    reason: PodReason | None  # why it does not run; None: it runs, or unknown


def of_node(seen: NodeInDetail, *, now: datetime) -> dict[str, Any]:
    node, layout, as_of = seen.node, Layout.read(seen.node.layout), seen.cluster_freshness.pods_as_of
    pods = [pod for pod in seen.pods or () if not pod.operand]
    reasons = reasons_of(pods, now=now)
    pods.sort(key=lambda pod: (-pod.gpus, pod.namespace, pod.name))
    return {
        "physical": physical_of([node]),
        "resource_lines": seen.resources,
        "none_reason": none_reason(node),
        "ways": _resource_groups(seen.resources, [pod for pod in pods if pod.phase not in ENDED]),
        "boards": boards_on_page(node, [board for board in seen.boards if _is_named(board)]),
        "nameless": sum(not _is_named(board) for board in seen.boards),
        "unplaced": [(one, unplaced_in_words(one, layout)) for one in seen.unplaced],
        # True: GPUs are allocated, but for none the pod is known.
        "nobody_knows": bool(seen.unplaced) and not any(board.allocations for board in seen.boards),
        "disagreements": seen.disagreements,
        "exporter_note": seen.exporter_note,
        "knows_which": bool(node.unhealthy) or any(board.taints for board in seen.boards),
        "unhealthy": node.unhealthy,
        "pods": [
            PodLine(pod, allocated_to(pod, layout), word_of(pod, now=now, as_of=as_of), reasons.get(pod.uid))
            for pod in pods
        ],
    }


def boards_on_page(node: Node, boards: Sequence[Board]) -> list[BoardOnPage]:
    """Returns the GPUs, the worst first. One query if an app above has findings."""
    uuids = {board.index: board.uuid for board in boards if board.index is not None}
    found: dict[int | None, list[Sickness]] = defaultdict(list)
    for more in SICKNESSES:
        for index, sickness in more(node, uuids):
            found[index].append(sickness)
    shown = [BoardOnPage(board, (*found[board.index], *_reported_faults(node, board))) for board in boards]
    return sorted(shown, key=lambda one: one.rank)


def _reported_faults(node: Node, board: Board) -> Iterator[Sickness]:
    """Yields faults reported by kubelets, labels and DRA drivers."""
    unhealthy = [] if board.index is None else node.unhealthy_of(board.index, board.uuid)
    for sentence in (*unhealthy, *(f"Tainted {taint}: takes no new pods." for taint in board.taints)):
        yield Sickness(TAINTED, "warn", sentence)


def none_reason(node: Node) -> str:
    """Explains why a GPU node never offered anything. NVIDIA: mig-strategy.go of k8s-device-plugin, `INVALID`."""
    if node.labels.get(keys.GPU_PRODUCT, "").endswith("-MIG-INVALID"):
        return (
            "The MIG strategy is single, and this node's GPUs do not all have the same MIG slices: the device plugin "
            "then offers nothing. Give them one layout with nvidia.com/mig.config, or set the strategy to mixed in the "
            "ClusterPolicy."
        )
    if node.capacity:
        names = ", ".join(sorted(node.capacity))
        return f"{names} has the count 0: its device plugin finds no GPU, or was removed before the watch began."
    return (
        "This node has never offered a GPU resource since the watch began. Its device plugin has not registered "
        "with the kubelet, or a DRA driver has not published its devices yet."
    )


def allocated_to(pod: Pod, layout: Layout) -> str:
    """Returns `2 GPUs`, `1 time-slice` or `by claim train-gpu`. Blank: none, or finished."""
    if pod.phase in ENDED:
        return ""
    parts = [in_words(number, layout.way(name)) for name, number in pod.resources.items()]
    if not parts and pod.gpus:
        parts = [in_words(pod.gpus, Way())]
    if not parts and not pod.claims and gpu_groups(pod.labels):
        return "a part of a GPU that another pod holds for this pod"
    return ", ".join([*parts, *(f"by claim {name}" for name in pod.claims)])


def unplaced_in_words(one: Unplaced, layout: Layout) -> str:
    if one.number is None:
        return f"claim {one.claim}, which is not visible"
    return in_words(one.number, layout.way(one.resource))


def _resource_groups(lines: Sequence[ResourceLine], pods: Sequence[Pod]) -> list[WayOnNode]:
    """Groups the resources by kind of unit, the most common first."""
    found: dict[Explanation, WayOnNode] = {}
    by_resource: dict[str, WayOnNode] = {}
    for line in lines:
        if line.expected is not None:
            told = explain(line.way)
            way = found.setdefault(told, WayOnNode(line.kind, line.way.sharing, told))
            way.parts.append(line)
            by_resource[line.name] = way
    for pod in pods:
        ways = {id(by_resource[name]): by_resource[name] for name in pod.resources if name in by_resource}
        for way in ways.values():
            way.pods.append(pod)
    return list(found.values())


def _is_named(board: Board) -> bool:
    return board.index is not None or bool(board.uuid)
