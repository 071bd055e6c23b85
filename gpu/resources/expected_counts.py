"""The expected amount of each resource of a node: the highest amount seen under the current layout."""

from collections.abc import Mapping
from enum import StrEnum

from gpu.resources.names import DRA_DRIVERS, FOR_MACHINES


class Since(StrEnum):
    FIRST = "first"  # first sight of the node's GPUs
    SAME = "same"  # the layout is that of `before`
    RECUT = "recut"  # the layout changed


def expect(
    before: Mapping[str, int],
    capacity: Mapping[str, int],
    allocatable: Mapping[str, int],
    most: Mapping[str, int],
    *,
    since: Since,
) -> dict[str, int]:
    """Returns the expected amounts.

    The kubelet reports the capacity of a stopped device plugin for another five minutes. So right after a layout
    change a resource becomes expected only once some of it is allocatable. `most` has the counts of labels; a
    capacity above it belongs to an outdated layout.
    """
    expected = {} if since is Since.RECUT else dict(before)
    for name, amount in capacity.items():
        if since is not Since.FIRST and name not in expected and not allocatable.get(name):
            continue
        amount_now = min(amount, most.get(name, amount))
        if amount_now > expected.get(name, 0):
            expected[name] = amount_now
    return expected if since is Since.RECUT else expected | _reassigned_to_machines(before, expected, capacity)


def _reassigned_to_machines(
    before: Mapping[str, int], expected: Mapping[str, int], current: Mapping[str, int]
) -> dict[str, int]:
    """Returns amounts of boards that a DRA driver offers to virtual machines under another name; they are not lost."""
    reassigned: dict[str, int] = {}
    for driver in DRA_DRIVERS:
        machines = driver + FOR_MACHINES
        if not (before.get(machines) or current.get(machines)):
            continue
        boards = before.get(driver, 0) + before.get(machines, 0)
        reassigned[machines] = current.get(machines, 0)
        reassigned[driver] = max(current.get(driver, 0), boards - reassigned[machines])
    return {name: amount for name, amount in reassigned.items() if amount or name in expected}
