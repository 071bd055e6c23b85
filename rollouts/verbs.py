"""The verbs of plan commands, each with its terms for pages, REST and commands.

Every command has a reason, which is kept for good. The lifecycle defines the resulting state.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from people.rights import Permission
from rollouts.lifecycle import PLAN_FINAL, PLAN_UNDER_WAY, PlanState


@dataclass(frozen=True)
class PlanVerb:
    label: str  # label of its button; sentences use it in lower case
    resource: str  # path of the POST below the plan
    permission: Permission
    states: frozenset[PlanState]  # in which it means something
    consequence: str  # for who is about to say it
    done: str  # once it is written down
    did: str  # past tense, after a user's name
    # states in which its effect holds: its target, and states that the engine reaches from there
    leads_to: frozenset[PlanState]
    undone_by: frozenset[str] = frozenset()  # later verbs that end its effect
    is_dangerous: bool = False  # stops or ends something: a red button
    refusals: Mapping[PlanState, str] = field(default_factory=dict)  # where a state has a sentence of its own


ENDS_A_STANDSTILL = frozenset({"resume", "complete", "rollback", "abort"})
ENDS_A_MOVE = frozenset({"halt", "pause", "rollback", "abort"})

VERBS: Mapping[str, PlanVerb] = {
    "start": PlanVerb(
        "Start",
        "starts",
        Permission.RUN,
        frozenset({PlanState.DRAFT}),
        "Checks the cluster for blockers. Then it seals the plan, holds every node of the driver object, and "
        "writes the new version. The first stage waits for its approval before any node is released.",
        "Start requested: the cluster is checked first, then every node of the object is held.",
        "started it",
        frozenset({PlanState.HOLDING, PlanState.PROMOTING, PlanState.HALTED, PlanState.PROMOTED}),
        undone_by=frozenset({"rollback", "abort"}),
    ),
    "halt": PlanVerb(
        "Halt",
        "halts",
        Permission.STOP,
        frozenset({PlanState.HOLDING, PlanState.PROMOTING}),
        (
            "No more nodes are released. Released nodes that have not begun are held again. Changed nodes stay "
            "changed until you resume, roll back or abort."
        ),
        "Halted: no more nodes are released.",
        "halted it",
        frozenset({PlanState.HALTED}),
        undone_by=ENDS_A_STANDSTILL,
        is_dangerous=True,
        refusals={
            PlanState.HALTED: "The plan is already halted.",
            PlanState.ROLLING_BACK: "The plan is already being rolled back. Pause it to stop further changes.",
            PlanState.ABORTING: "The plan is already being aborted and cannot be halted.",
        },
    ),
    "pause": PlanVerb(
        "Pause",
        "pauses",
        Permission.STOP,
        frozenset({PlanState.HOLDING, PlanState.PROMOTING, PlanState.ROLLING_BACK}),
        "No more nodes are released until somebody resumes the plan. Gates are still evaluated.",
        "Paused: nodes that have not begun are held again.",
        "paused it",
        PLAN_UNDER_WAY,
        undone_by=ENDS_A_STANDSTILL,
    ),
    "resume": PlanVerb(
        "Resume",
        "resumptions",
        Permission.RUN,
        frozenset({PlanState.HALTED}),  # and wherever it is paused
        "Continues the plan. Every gate is evaluated again; a gate that still fails halts the plan again.",
        "Resumed: every gate is evaluated again.",
        "resumed it",
        frozenset(PlanState) - {PlanState.HALTED},
        undone_by=ENDS_A_MOVE,
    ),
    "rollback": PlanVerb(
        "Roll back",
        "rollbacks",
        Permission.RUN,
        frozenset({PlanState.PROMOTING, PlanState.HALTED}),
        (
            "Holds all nodes, restores the old version, and rolls every changed node back in waves. The plan's "
            "approval covers this, so no new approval is needed."
        ),
        "Rolling back: the old version is restored, then the changed nodes are rolled back in waves.",
        "rolled it back",
        frozenset({PlanState.ROLLING_BACK, PlanState.ROLLED_BACK}),
        undone_by=frozenset({"abort"}),
        refusals={
            PlanState.HOLDING: "The new version is being written: halt it first, then roll back.",
            PlanState.ROLLING_BACK: "The plan is already being rolled back.",
            PlanState.ABORTING: "The plan is already being aborted and cannot be rolled back.",
        },
    ),
    "cordon": PlanVerb(
        "Cordon affected nodes",
        "cordons",
        Permission.RUN,
        frozenset({PlanState.HALTED}),
        "Cordons the nodes that failed, and those that a failing gate names. Running pods stay, and no new pods start "
        "there. The plan owns the cordons: a resumption, a rollback, an abort or the plan's end removes them. A failed "
        "node stays cordoned after a resumption.",
        "The affected nodes are cordoned within seconds.",
        "had its affected nodes cordoned",
        frozenset({PlanState.HALTED}),
        undone_by=ENDS_A_STANDSTILL,
    ),
    "abort": PlanVerb(
        "Abort",
        "aborts",
        Permission.RUN,
        frozenset({PlanState.HOLDING, PlanState.PROMOTING, PlanState.HALTED, PlanState.ROLLING_BACK}),
        (
            "Ends the plan: the old version is restored and unchanged nodes are released. Changed nodes keep the "
            "new driver and stay held. If somebody else has changed the object, every node stays held until a "
            "person hands it over."
        ),
        "Aborting: the old version is restored and unchanged nodes are released.",
        "aborted it",
        frozenset({PlanState.ABORTING, PlanState.ABORTED}),
        is_dangerous=True,
        refusals={PlanState.ABORTING: "The plan is already being aborted."},
    ),
    "handover": PlanVerb(
        "Hand over",
        "handovers",
        Permission.RUN,
        frozenset({PlanState.ABORTING}),
        (
            "Releases the nodes of this plan to the version that somebody else wrote to the driver object. The "
            "nodes change in waves, within the plan's budget and the operator's slots. A stop, a freeze or a closed "
            "window still prevents releases."
        ),
        "Handed over: the nodes change in waves to the version of the object.",
        "handed its nodes over",
        frozenset({PlanState.ABORTING, PlanState.ABORTED}),
        undone_by=frozenset({"handover"}),
        is_dangerous=True,
    ),
    "complete": PlanVerb(
        "Complete without the rest",
        "completions",
        Permission.RUN,
        frozenset({PlanState.PROMOTING, PlanState.HALTED}),
        (
            "Excludes every node of the last stage that failed or is held, and continues with the other nodes. Once "
            "their gates pass, the plan is promoted without the excluded nodes. Held nodes stay held with their "
            "present driver."
        ),
        "Continuing without the excluded nodes: the gates evaluate the other nodes.",
        "completed the plan without the rest",
        frozenset({PlanState.HOLDING, PlanState.PROMOTING, PlanState.PROMOTED}),
        undone_by=ENDS_A_MOVE,
    ),
    "discard": PlanVerb(
        "Discard",
        "discards",
        Permission.DRAFT,
        frozenset({PlanState.DRAFT}),
        "Deletes the draft. No cluster was changed.",
        "Discarded.",
        "discarded it",
        frozenset({PlanState.DISCARDED}),
        is_dangerous=True,
    ),
}


def why_not_now(verb: str, state: PlanState, *, is_written: bool, is_paused: bool) -> str:
    """Returns why the verb is not allowed in this state; empty means it is.

    `is_written` tells whether the version is written.
    """
    its = VERBS[verb]
    word = its.label.lower()
    if state in PLAN_FINAL:
        return f"The plan is {_words(state)} and has ended, so you cannot {word} it."
    if PlanState.DRAFT in its.states:
        return "" if state is PlanState.DRAFT else "The plan was already started."
    if state is PlanState.DRAFT:
        return f"The plan was not started yet, so you cannot {word} it."
    if is_paused and verb == "resume":
        return ""
    if verb == "rollback" and not is_written:
        return "The new version was not written yet, so no rollback is needed. Abort the plan instead."
    if state not in its.states:
        nothing = (
            f"The plan is {_words(state)}{' and not paused' if verb == 'resume' else ''}, so you cannot {word} it."
        )
        return its.refusals.get(state, nothing)
    return "The plan is already paused." if is_paused and verb == "pause" else ""


def is_in_effect(verb: str, state: PlanState, *, later: Collection[str]) -> bool:
    """Returns whether a command's effect still holds. `later` are the verbs given since."""
    its = VERBS[verb]
    return state in its.leads_to and its.undone_by.isdisjoint(later)


def _words(state: PlanState) -> str:
    return state.replace("-", " ")
