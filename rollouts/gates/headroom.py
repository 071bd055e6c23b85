"""The GPU pods that the next wave evicts find room elsewhere (Z13).

It is evaluated before each wave, since nodes and free GPUs change with every wave. Pods are placed one by one, the
largest first, on nodes with the same GPU product: eight free GPUs on eight nodes are no room for a pod of eight.
Resources are compared by name. Selectors, affinity, taints, quotas, CPU, memory and other waiting pods are not
considered. Pods with a priority below -10 need no room, and their GPUs count as free: the Cluster Autoscaler calls them
expendable (expendable-pods-priority-cutoff).
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rollouts.gates.base import BOUND, Evidence, Gate, GateResult, NextWave, PodWants, When
from rollouts.gates.results import OVERRIDE, no_target, passed, wait
from wording.lists import names
from wording.numbers import count, either
from wording.reports import EvidenceItem

NO_ROOM = "The pods would be pending after their eviction."
FREE_ROOM = ("Free GPUs on other nodes.", "Or raise the option tolerate of the gate.", *OVERRIDE)


@dataclass(frozen=True)
class Headroom(Gate):
    tolerate: int = 0  # GPUs, slices or shares that may find no room; one more is waited for

    key: ClassVar[str] = "headroom"
    title: ClassVar[str] = "Headroom"
    when: ClassVar[When] = When.WAVE

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        wave = evidence.next_wave
        if not evidence.counted:
            return no_target()
        if wave is None and evidence.bound_reason:
            return wait("No node can be released now", evidence.bound_reason, cause=BOUND)
        if wave is None:
            return wait("The nodes of the next wave are unknown", "No remaining node is visible.", cause="unseen")
        if not wave.nodes:
            return passed("No node is left to release", cause="none-left")
        if wave.claiming:
            title = f"Free devices for {count(wave.claiming, 'GPU pod')} of the next wave are unknown"
            claims = (EvidenceItem("Pods with claims", wave.claiming), EvidenceItem("Nodes", names(wave.nodes)))
            summary = "These pods claim devices (DRA)."
            return wait(title, summary, cause="claims", evidence=claims, steps=OVERRIDE, is_final=True)
        if not wave.pods:
            return passed("No GPU pod must leave the next wave", f"Nodes: {names(wave.nodes)}.", cause="idle")
        short = short_of(wave)
        items = (*room_items(wave), EvidenceItem("Tolerated without room", self.tolerate))
        if short > self.tolerate:
            return wait(shortage(wave), NO_ROOM, cause="short", nodes=wave.nodes, evidence=items, steps=FREE_ROOM)
        if short:
            summary = f"{short} GPUs, slices or shares lack room. The gate tolerates {self.tolerate}."
            return passed(shortage(wave), summary, cause="tolerated", evidence=items)
        title = f"{count(len(wave.pods), 'GPU pod')} of the next wave {either(len(wave.pods), 'fits', 'fit')} elsewhere"
        return passed(title, f"Nodes of the wave: {names(wave.nodes)}.", evidence=items)


def short_of(wave: NextWave) -> int:
    """Returns how many GPUs, slices or shares the pods without room lack."""
    return sum(amount for pod in without_room(wave) for amount in pod.resources.values())


def shortage(wave: NextWave) -> str:
    """Returns text such as "1 of 2 GPU pods of the next wave fits nowhere". Free GPUs may be fragmented."""
    homeless = len(without_room(wave))
    fit = either(homeless, "fits", "fit")
    return f"{homeless} of {count(len(wave.pods), 'GPU pod')} of the next wave {fit} on no other node"


def room_items(wave: NextWave) -> tuple[EvidenceItem, ...]:
    """Returns the wave's nodes and pods, and the needed and free number of each resource."""
    wanted, free = _wanted_resources(wave), _free_resources(wave)
    return (
        EvidenceItem("Nodes of the wave", names(wave.nodes)),
        EvidenceItem("GPU pods", len(wave.pods)),
        EvidenceItem("GPU pods without room", len(without_room(wave))),
        *(item for name in sorted(wanted) for item in _room_of(name, wanted, free, wave.expendable)),
    )


def _room_of(
    name: str, wanted: Mapping[str, int], free: Mapping[str, int], expendable: Mapping[str, int]
) -> Iterator[EvidenceItem]:
    yield EvidenceItem(f"{name} needed", wanted[name])
    yield EvidenceItem(f"{name} free", free[name])
    if in_use := min(free[name], expendable.get(name, 0)):
        yield EvidenceItem(f"{name} in use by pods with a priority below -10", in_use)


def without_room(wave: NextWave) -> list[PodWants]:
    """Returns the pods that fit nowhere. The largest is placed first, each where the least remains free."""
    left = {product: [dict(node) for node in nodes] for product, nodes in wave.free.items()}
    homeless = []
    for pod in sorted(wave.pods, key=lambda pod: (-sum(pod.resources.values()), pod.name)):
        fitting = [
            node
            for node in left.get(pod.product, [])
            if all(node.get(name, 0) >= amount for name, amount in pod.resources.items())
        ]
        if not fitting:
            homeless.append(pod)
            continue
        tightest = min(fitting, key=lambda node: sum(node.get(name, 0) for name in pod.resources))
        for name, amount in pod.resources.items():
            tightest[name] = tightest.get(name, 0) - amount  # the pod may request no such resource
    return homeless


def _wanted_resources(wave: NextWave) -> Counter[str]:
    total: Counter[str] = Counter()
    for pod in wave.pods:
        total.update(pod.resources)
    return total


def _free_resources(wave: NextWave) -> Counter[str]:
    """Returns the free resources on nodes with a wanted product."""
    total: Counter[str] = Counter()
    for product in {pod.product for pod in wave.pods}:
        for node in wave.free.get(product, ()):
            total.update(_positive_amounts(node))
    return total


def _positive_amounts(node: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in node.items() if number > 0}
