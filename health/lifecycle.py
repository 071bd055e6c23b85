"""Every state of a finding, and every move it may make. Pure: no Django, no I/O."""

from collections.abc import Mapping
from enum import StrEnum


class FindingState(StrEnum):
    CONFIRMING = "confirming"  # the fault has not lasted as long as its rule requires; not notified
    OPEN = "open"  # somebody should look
    ACKNOWLEDGED = "acknowledged"  # somebody does
    MUTED = "muted"  # muted by a person for a while
    RESOLVED = "resolved"  # the rule no longer reports it; a problem that returns soon opens the same row again


# A problem that ends before its confirmation leaves no trace: its row is deleted.
FINDING_MOVES: Mapping[FindingState, frozenset[FindingState]] = {
    FindingState.CONFIRMING: frozenset({FindingState.OPEN, FindingState.MUTED}),
    FindingState.OPEN: frozenset({FindingState.ACKNOWLEDGED, FindingState.MUTED, FindingState.RESOLVED}),
    FindingState.ACKNOWLEDGED: frozenset({FindingState.OPEN, FindingState.MUTED, FindingState.RESOLVED}),
    FindingState.MUTED: frozenset({FindingState.OPEN, FindingState.RESOLVED}),
    FindingState.RESOLVED: frozenset({FindingState.OPEN, FindingState.MUTED}),
}
