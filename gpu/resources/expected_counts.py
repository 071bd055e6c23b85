"""How much of each resource a node should have: the most that was ever seen while its GPUs were cut and shared so."""

from collections.abc import Mapping
from enum import StrEnum

from gpu.resources.names import DRA_DRIVERS, FOR_MACHINES


class Since(StrEnum):
    FIRST = "first"  # the node was never seen with GPUs before
    SAME = "same"  # its layout is the one that `before` is of
    RECUT = "recut"  # its layout is another


def expect(
    before: Mapping[str, int],
    capacity: Mapping[str, int],
    allocatable: Mapping[str, int],
    most: Mapping[str, int],
    *,
    since: Since,
) -> dict[str, int]:
    """What is expected of each resource from now on.

    The kubelet names the capacity of a stopped device plugin for another five minutes, so that just after GPUs were cut
    anew it still shows what they were before; but it allocates none of it. Hence after that only a resource of which
    something can be allocated begins to be expected. `most`: what labels count; a capacity above it is of a layout
    that the labels tell no more, or not yet.
    """
    expected = {} if since is Since.RECUT else dict(before)
    for name, amount in capacity.items():
        if since is not Since.FIRST and name not in expected and not allocatable.get(name):
            continue
        seen = min(amount, most.get(name, amount))
        if seen > expected.get(name, 0):
            expected[name] = seen
    return expected if since is Since.RECUT else expected | _moved_to_machines(before, expected, capacity)


def _moved_to_machines(
    before: Mapping[str, int], expected: Mapping[str, int], there: Mapping[str, int]
) -> dict[str, int]:
    """A board that a virtual machine gets is offered under another name until it is back: it is not lost."""
    moved: dict[str, int] = {}
    for driver in DRA_DRIVERS:
        machines = driver + FOR_MACHINES
        if not (before.get(machines) or there.get(machines)):
            continue
        boards = before.get(driver, 0) + before.get(machines, 0)
        moved[machines] = there.get(machines, 0)
        moved[driver] = max(there.get(driver, 0), boards - moved[machines])
    return {name: amount for name, amount in moved.items() if amount or name in expected}
