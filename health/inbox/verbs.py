"""Every act that a person can take on a finding, with the texts of pages and REST."""

from collections.abc import Mapping
from dataclasses import dataclass

from health.lifecycle import FindingState
from people.rights import Permission

MAY = Permission.STOP  # the right to stop a plan includes the right to handle findings
WHAT = "act on findings"
MUTABLE = frozenset({FindingState.OPEN, FindingState.ACKNOWLEDGED})


@dataclass(frozen=True)
class FindingVerb:
    label: str  # of its button
    states: frozenset[FindingState]  # in which it means something
    consequence: str  # shown before the act
    done: str  # once it is written down
    needs_reason: bool = True
    changes: tuple[str, ...] = ()  # columns that must be unchanged since they were shown


UNRESOLVED = frozenset({FindingState.OPEN, FindingState.ACKNOWLEDGED, FindingState.MUTED})

VERBS: Mapping[str, FindingVerb] = {
    "acknowledge": FindingVerb(
        "Acknowledge",
        frozenset({FindingState.OPEN}),
        "Says that you look after it; where it is nobody's, it is yours. It opens again when it becomes "
        "critical, or is critical and its cause changes.",
        "Acknowledged.",
        needs_reason=False,
    ),
    "assign": FindingVerb(
        "Assign",
        UNRESOLVED,
        "Says whose it is. They find it under “Mine”.",
        "Assigned.",
        needs_reason=False,
        changes=("assigned_to",),
    ),
    "unassign": FindingVerb(
        "Unassign",
        UNRESOLVED,
        "Nobody looks after it then: it is open again, and nobody's.",
        "Unassigned: it is nobody's now.",
        needs_reason=False,
        changes=("assigned_to",),
    ),
    "accept": FindingVerb(
        "Accept",
        UNRESOLVED,
        "Says that the recommended action is right. It is not carried out by this: you do it. It is counted for the "
        "rule.",
        "Kept: the action was right.",
        changes=("steps",),
    ),
    "dismiss": FindingVerb(
        "Dismiss",
        UNRESOLVED,
        "Says that the recommended action is not right here. The finding stays. It is counted for the rule.",
        "Kept: the action was not right here.",
        changes=("steps",),
    ),
    "mute": FindingVerb(
        "Mute",
        MUTABLE,
        "Nobody is told of it until the mute ends, also where it comes back. What is still wrong then is open again.",
        "Muted.",
    ),
}


def why_not_now(verb: str, state: FindingState, *, acknowledged_by: str = "") -> str:
    """Returns why this act is not possible in this state; empty if it is."""
    if state in VERBS[verb].states:
        return ""
    if state is FindingState.RESOLVED:
        return "It is resolved: there is nothing to do about it."
    if state is FindingState.CONFIRMING:
        return "It is being confirmed: nobody was told of it yet."
    if state is FindingState.MUTED:
        return "It is muted: lift the mute first." if verb == "acknowledge" else "It is muted already."
    return f"{acknowledged_by or 'Somebody'} acknowledged it already."
