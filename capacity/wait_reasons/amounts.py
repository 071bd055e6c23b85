"""Amounts of resources as text, and the resource of a pod that is hardest to place. Pure."""

from collections.abc import Mapping

from capacity.wait_reasons.device_requests import PREFIX
from capacity.wait_reasons.obstacles import CPU, MEMORY, PODS, Obstacles
from gpu.resources import Layout, in_words, is_gpu_resource
from wording.numbers import count, either

BY_NAME = Layout()
GIB = 2**30


def amount_text(resource: str, amount: int) -> str:
    """Returns `8 GPUs`, `2.5 CPUs` or `64 GiB of memory`. Memory is rounded down: a pod that requests it fits."""
    if resource == CPU:
        return f"{amount / 1000:.12g} {either(amount, 'CPU', 'CPUs')}" if amount != 1000 else "1 CPU"
    if resource == MEMORY:
        return f"{amount // 2**20} MiB of memory" if amount < GIB else f"{amount * 100 // GIB / 100:.12g} GiB of memory"
    if resource == PODS:
        return f"room for {count(amount, 'more pod')}"
    if resource.startswith(PREFIX):
        return f"{amount} {either(amount, 'device', 'devices')} of {resource.removeprefix(PREFIX)}"
    if is_gpu_resource(resource):
        return in_words(amount, BY_NAME.way(resource))
    return f"{amount} {resource}"


def main_resource(obstacles: Obstacles) -> str:
    """Returns the GPU resource that the fewest nodes offer. Blank: the pod requests none."""
    gpus = [name for name in obstacles.pod.requests if is_gpu_resource(name) or name.startswith(PREFIX)]
    return min(gpus, key=lambda name: obstacles.index.offering(name).bit_count(), default="")


def by_weight(requests: Mapping[str, int]) -> list[tuple[str, int]]:
    """Returns the requests, GPUs first."""
    return sorted(requests.items(), key=lambda each: (each[0] in (CPU, MEMORY, PODS), each[0]))
