"""Puts workloads on machines as a scheduler has done long ago: the largest first, on the emptiest machine."""

from dataclasses import dataclass

from simulator.fleets.machines import Machine
from simulator.fleets.tenants import PRIORITIES, Workload


@dataclass(frozen=True, slots=True)
class Placed:
    workload: Workload
    node: str  # empty: waits for a GPU


def packed(workloads: tuple[Workload, ...], machines: tuple[Machine, ...]) -> list[Placed]:
    free = {machine.name: machine.gpus for machine in machines if machine.sku}
    product = {machine.name: machine.sku.product for machine in machines if machine.sku}
    placed: list[Placed] = []
    for workload in sorted(workloads, key=lambda each: (-each.gpus, -PRIORITIES[each.priority])):
        for _ in range(workload.replicas):
            fitting = [
                node for node, left in free.items() if left >= workload.gpus and workload.product in ("", product[node])
            ]
            node = max(fitting, key=lambda each: free[each], default="")
            if node:
                free[node] -= workload.gpus
            placed.append(Placed(workload, node))
    return placed
