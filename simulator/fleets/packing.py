"""Puts workloads on machines as a scheduler has done long ago: the largest first, on the emptiest machine."""

from dataclasses import dataclass
from heapq import heapify, heappop, heapreplace

from simulator.fleets.machines import Machine
from simulator.fleets.tenants import PRIORITIES, Workload


@dataclass(frozen=True, slots=True)
class Placed:
    workload: Workload
    node: str  # empty: waits for a GPU


def packed(workloads: tuple[Workload, ...], machines: tuple[Machine, ...]) -> list[Placed]:
    free = [dict(machine.rooms) for machine in machines]
    products = [machine.product for machine in machines]
    placed: list[Placed] = []
    for workload in sorted(workloads, key=lambda each: (-each.gpus, -PRIORITIES[each.priority])):
        fitting = [
            (-room.get(workload.room, 0), index)
            for index, room in enumerate(free)
            if room.get(workload.room, 0) >= workload.gpus and workload.product in ("", products[index])
        ]
        heapify(fitting)
        placed += [Placed(workload, _place(workload, fitting, free, machines)) for _ in range(workload.replicas)]
    return placed


def _place(
    workload: Workload, fitting: list[tuple[int, int]], free: list[dict[str, int]], machines: tuple[Machine, ...]
) -> str:
    """The emptiest machine, of several the first; empty when none has room."""
    if not fitting:
        return ""
    index = fitting[0][1]
    free[index][workload.room] -= workload.gpus
    left = free[index][workload.room]
    if left >= workload.gpus:
        heapreplace(fitting, (-left, index))
    else:
        heappop(fitting)
    return machines[index].name
