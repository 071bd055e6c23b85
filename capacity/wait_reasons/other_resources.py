"""The GPU resources that a pod could request in place of one that no node offers. Pure."""

import re
from dataclasses import replace
from math import inf

from capacity.wait_reasons.amounts import BY_NAME, amount_text
from capacity.wait_reasons.answers import Actor, Change
from capacity.wait_reasons.obstacles import Obstacles, find_obstacles
from gpu.resources import ResourceKind, is_gpu_resource
from gpu.resources.names import profile_in

NAMED = 2  # resources that are proposed
MEMORY = re.compile(r"\.(\d+)gb")  # of a MIG profile


def other_resources(obstacles: Obstacles, resource: str) -> list[Change]:
    """Returns the resources of the same vendor on which the pod fits, those that fit now first, then the smallest.

    A MIG slice has the memory of the requested one or more, so that what fits there fits here.
    """
    pod, index = obstacles.pod, obstacles.index
    offered = {name for node in index.nodes for name, amount in node.allocatable.items() if amount}
    found = []
    for name in sorted(offered - pod.requests.keys()):
        if not is_gpu_resource(name) or name.partition("/")[0] != resource.partition("/")[0]:
            continue
        size = _memory_of(name)
        if size is None or size < (_memory_of(resource) or inf):
            continue
        amount = pod.requests[resource]
        requests = {key: value for key, value in pod.requests.items() if key != resource} | {name: amount}
        there = find_obstacles(replace(pod, requests=requests), index)
        if later := there.candidates.bit_count():
            now = there.fitting.bit_count()
            text = f"Request {amount_text(name, amount)} ({name}) in place of {resource}."
            found.append((not now, size, -now, Change(text, Actor.OWNER, now, later)))
    return [change for *_, change in sorted(found, key=lambda each: each[:3])[:NAMED]]


def _memory_of(resource: str) -> float | None:
    """Returns the memory of a MIG slice in GB. Infinity: a whole GPU; None: the name does not tell."""
    if BY_NAME.way(resource).kind is ResourceKind.WHOLE:
        return inf
    found = MEMORY.search(profile_in(resource))
    return float(found[1]) if found else None
