"""The GPU pods that the next wave evicts find room elsewhere (Z13).

It is evaluated before each wave, since nodes and free GPUs change with every wave. Pods are placed one by one, the
largest first, on nodes with the same GPU product: eight free GPUs on eight nodes are no room for a pod of eight.
Resources are compared by name. Selectors, affinity, taints, quotas, CPU, memory and other waiting pods are not
considered. Pods with a priority below -10 need no room, and their GPUs count as free: the Cluster Autoscaler calls them
expendable (expendable-pods-priority-cutoff).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rollouts.gates.base import BOUND, Evidence, Gate, GateResult, NextWave, PodWants, When, passed, wait
from wording.lists import names
from wording.numbers import are, count, either


@dataclass(frozen=True)
class Headroom(Gate):
    tolerate: int = 0  # GPUs, slices or shares that may find no room; one more is waited for

    key: ClassVar[str] = "headroom"
    title: ClassVar[str] = "Headroom"
    when: ClassVar[When] = When.WAVE

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        wave = evidence.next_wave
        if not evidence.counted:
            return wait("The stage has no target left: there is nothing to find room for.", cause="no-target")
        if wave is None and evidence.bound_reason:
            return wait(f"Room is looked for once a node may go. {evidence.bound_reason}", cause=BOUND)
        if wave is None:
            unknown = "Which nodes go next is not known: none that is left may go now, or none is seen."
            return wait(unknown, cause="unseen")
        if not wave.nodes:
            return passed("No node is left to go.", cause="none-left")
        if wave.claiming:
            pods = (
                f"{count(wave.claiming, 'GPU pod')} on {names(wave.nodes)} {either(wave.claiming, 'claims', 'claim')}"
            )
            sentence = f"{pods} devices (DRA): whether others are free is not known."
            return wait(sentence, cause="claims", measured={"claiming": wave.claiming}, is_final=True)
        if not wave.pods:
            return passed(f"No GPU pod has to leave {names(wave.nodes)}.", cause="idle", measured={"pods": 0})
        homeless = without_room(wave)
        short = _sum(homeless)
        measured = {"pods": len(wave.pods), "without room": len(homeless), "short": short, "tolerated": self.tolerate}
        measured |= {f"{name} {what}": number for name, what, number in _numbers(wave)}
        if short > self.tolerate:
            return wait(f"{shortage(wave)}.", cause="short", nodes=wave.nodes, measured=measured)
        if short:
            sentence = f"{shortage(wave)}, where {self.tolerate} would be tolerated."
            return passed(sentence, cause="tolerated", measured=measured)
        return passed(f"{needs(wave)}.", measured=measured)


def short_of(wave: NextWave) -> int:
    """Returns how many GPUs, slices or shares the pods without room lack."""
    return _sum(without_room(wave))


def shortage(wave: NextWave) -> str:
    """Returns text such as "1 pod fits on no node, 8 short". Free GPUs may be fragmented."""
    homeless = without_room(wave)
    fits = f"{count(len(homeless), 'pod')} {either(len(homeless), 'fits', 'fit')} on no node"
    return f"{needs(wave)}: {fits}, {_sum(homeless)} short"


def _sum(pods: Sequence[PodWants]) -> int:
    return sum(amount for pod in pods for amount in pod.resources.values())


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
            tightest[name] = tightest.get(name, 0) - amount  # of none it may ask for none
    return homeless


def _numbers(wave: NextWave) -> list[tuple[str, str, int]]:
    wanted, free = _wanted(wave), _free(wave)
    return [
        (name, what, numbers[name]) for name in sorted(wanted) for what, numbers in (("needed", wanted), ("free", free))
    ]


def needs(wave: NextWave) -> str:
    wanted, free = _wanted(wave), _free(wave)
    pods = f"{count(len(wave.pods), 'GPU pod')} on {names(wave.nodes)} {either(len(wave.pods), 'needs', 'need')}"
    parts = [
        f"{number} {name} elsewhere and {_free_of(free[name], wave.expendable.get(name, 0))}"
        for name, number in sorted(wanted.items())
    ]
    return f"{pods} {', '.join(parts)}"


def _free_of(free: int, in_use: int) -> str:
    """Returns text on free GPUs; `in_use` are those that expendable pods hold."""
    said = f"{free} {are(free)} free"
    if not free or not in_use:
        return said
    which = "it is" if free == 1 else "all of them" if in_use == free else f"{in_use} of them"
    return f"{said} ({which} in use by pods of a priority below -10)"


def _wanted(wave: NextWave) -> Counter[str]:
    total: Counter[str] = Counter()
    for pod in wave.pods:
        total.update(pod.resources)
    return total


def _free(wave: NextWave) -> Counter[str]:
    """Returns the free resources on nodes with a wanted product."""
    total: Counter[str] = Counter()
    for product in {pod.product for pod in wave.pods}:
        for node in wave.free.get(product, ()):
            total.update(_positive(node))
    return total


def _positive(node: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in node.items() if number > 0}
