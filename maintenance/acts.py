"""The acts on a case that people are offered, in the order of its life. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from maintenance.lifecycle import CORDONED, FINAL, NEW, TITLES, CaseFacts, CaseState
from operations.kinds import CASE_ACTS

S = CaseState  # for the table
OFFERED_BY_STEP = {kind.key for kind in CASE_ACTS}
ENDING = {kind.key for kind in CASE_ACTS if kind.ends_quarantine}


@dataclass(frozen=True)
class CaseAct:
    """An act of a person. `operation`: the kind of operation that does it; blank: a command on the case."""

    key: str
    title: str
    states: frozenset[CaseState]
    operation: str = ""
    says: str = ""  # in its dialog


# In the order of a case's life: the first that a state offers is its next step.
ACTS: Mapping[str, CaseAct] = {
    act.key: act
    for act in (
        CaseAct("quarantine", "Quarantine", frozenset({CaseState.SUSPECT}), "quarantine"),
        CaseAct("accept-uncordon", "Accept uncordon", CORDONED | NEW, "accept-uncordon"),
        CaseAct(
            "drain", "Drain",
            frozenset({CaseState.SUSPECT, CaseState.QUARANTINED, CaseState.DRAIN_BLOCKED}), "drain",
        ),
        CaseAct(
            "answer", "Answer", frozenset({S.IN_REPAIR}),
            says="Answer for the actor of the repair.",
        ),
        CaseAct("release", "Release", CORDONED - {S.DRAINING} | NEW, "release"),
        CaseAct(
            "repair", "Ask for a repair", frozenset({S.QUARANTINED, S.DRAIN_BLOCKED, S.DRAINED}),
            says="The case waits for the answer. A reboot is asked for at most twice in a case. Before a reboot, a GPU "
            "reset or a hardware repair, the logs of the node are collected first.",
        ),
        CaseAct("test", "Run a test", frozenset({S.DRAINED, S.VALIDATING, S.LABELLED}), "test"),
        CaseAct(
            "validate", "Record a validation", frozenset({S.DRAINED, S.VALIDATING, S.PROBATION, S.LABELLED}),
            says="The result of a test on all GPUs of the node, such as dcgmi diag -r 3.",
        ),
        CaseAct(
            "override", "Return without validation", CORDONED - {S.DRAINING} | NEW,
            says="Allows the release. The case shows it until a validation passes.",
        ),
        CaseAct(
            "close", "Close the case", frozenset({S.SUSPECT, S.PROBATION}), says="The node stays in service.",
        ),
        CaseAct(
            "retire", "Retire", frozenset(S) - FINAL,
            says="The node does not return to service. Quarterdeck's cordon, if there is one, stays.",
        ),
        *(CaseAct(kind.key, kind.title, frozenset(S) - FINAL - {S.PROBATION}, kind.key) for kind in CASE_ACTS),
        CaseAct(
            "take-over", "Take over", frozenset(S) - FINAL - {S.PROBATION},
            says="Ends the automatic steps. A running operation or repair continues; cancel an operation on its page.",
        ),
    )
}  # fmt: skip


def why_not(act: str, case: CaseFacts) -> str:
    """Returns why the case does not offer an act now. Blank: it does."""
    now = f"The case is {TITLES[case.state].lower()}."
    if case.state not in ACTS[act].states:
        return now
    if act in OFFERED_BY_STEP:
        return case.offers.get(act, "The node is not seen in its cluster.")
    if act == "take-over":
        return "" if case.is_automatic or case.is_chosen else "The case has no automatic steps."
    return _why_not_yet(act, case, now)


def _why_not_yet(act: str, case: CaseFacts, now: str) -> str:
    if act == "repair" and case.state != CaseState.DRAINED and case.is_ready:
        return f"{now} Drain the node first: its pods still run."
    if act == "test" and not case.is_ready:
        return f"{now} No test Job starts on the node: it is not Ready."
    if act == "close" and case.has_quarantine:
        return f"{now} Quarterdeck has cordoned the node: release it first."
    if act == "accept-uncordon" and not case.is_uncordoned:
        return f"{now} Nobody else uncordoned the node."
    if act == "release" and case.why_no_return:
        return case.why_no_return
    if act == "override" and not case.why_no_return:
        return "The node may return already."
    if act in ("validate", "close") and case.state == CaseState.PROBATION:
        if act == "close" and case.lacks_validation:
            return f"{case.why_unvalidated} Record one that passed first."
        if act == "validate" and not case.lacks_validation:
            return "The node is back in service, validated."
    return ""


def acts_of(case: CaseFacts) -> list[CaseAct]:
    """Returns the acts that are possible now, the next step first.

    While an operation is in progress there are none, but for what its release waits for, and to take the case over.
    There are none of a state that the next round of the case ends.
    """
    possible = [act for act in ACTS.values() if not why_not(act.key, case)]
    if case.is_busy:
        is_returning = case.newest is not None and case.newest.kind == "release"
        offered = {"take-over"}
        offered |= ENDING if is_returning else set()
        offered |= {"validate", "override"} if is_returning and case.why_no_return else set()
        return [act for act in possible if act.key in offered]
    if case.is_followed:
        return [act for act in possible if act.key == "take-over"]
    if not case.is_uncordoned:
        return possible
    first = ("quarantine",) if case.state == CaseState.IN_REPAIR else ("quarantine", "accept-uncordon")
    return [*(ACTS[key] for key in first), *(act for act in possible if act.key not in first)]
