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
        (
            "States that you are working on the finding. If it has no assignee, it is assigned to you. It opens "
            "again when it becomes critical, or when the cause of a critical finding changes."
        ),
        "Acknowledged.",
        needs_reason=False,
    ),
    "assign": FindingVerb(
        "Assign",
        UNRESOLVED,
        "Assigns the finding to a person, who finds it under “Mine”.",
        "Assigned.",
        needs_reason=False,
        changes=("assigned_to",),
    ),
    "unassign": FindingVerb(
        "Unassign",
        UNRESOLVED,
        "Removes the assignee and opens the finding again.",
        "Unassigned: the finding has no assignee now.",
        needs_reason=False,
        changes=("assigned_to",),
    ),
    "accept": FindingVerb(
        "Accept",
        UNRESOLVED,
        (
            "States that the recommended action is right. This does not carry out the action. The feedback counts "
            "for the rule."
        ),
        "Stored: the action is right.",
        changes=("steps",),
    ),
    "dismiss": FindingVerb(
        "Dismiss",
        UNRESOLVED,
        "States that the recommended action is wrong here. The finding stays. The feedback counts for the rule.",
        "Stored: the action is wrong here.",
        changes=("steps",),
    ),
    "mute": FindingVerb(
        "Mute",
        MUTABLE,
        (
            "Nobody is notified until the mute ends, even if the fault returns. A fault that still exists then is "
            "open again."
        ),
        "Muted.",
    ),
}


def why_not_now(verb: str, state: FindingState, *, acknowledged_by: str = "") -> str:
    """Returns why this act is not possible in this state; empty if it is."""
    if state in VERBS[verb].states:
        return ""
    if state is FindingState.RESOLVED:
        return "The finding is resolved and needs no action."
    if state is FindingState.CONFIRMING:
        return "The finding is not confirmed yet, so nobody was notified."
    if state is FindingState.MUTED:
        return (
            "The finding is muted. Lift the mute first." if verb == "acknowledge" else "The finding is already muted."
        )
    return f"{acknowledged_by or 'Somebody'} has already acknowledged the finding."
