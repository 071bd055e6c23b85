"""The states of a case, its moves, and the acts that people are offered. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from operations.lifecycle import NodeProgress
from wording.durations import spell


class CaseState(StrEnum):
    SUSPECT = "suspect"  # a person suspects the node; nothing is written to it
    QUARANTINED = "quarantined"  # Quarterdeck's cordon keeps new pods off
    DRAINING = "draining"  # an operation evicts its pods
    DRAIN_BLOCKED = "drain-blocked"  # the drain failed; a person decides
    DRAINED = "drained"  # no pod of a tenant is left
    PROBATION = "probation"  # back in service; the next sign of the fault reopens the case
    CLOSED = "closed"  # in service, or never sick
    RETIRED = "retired"  # it does not return; or the node left the cluster


CASE_MOVES: Mapping[CaseState, frozenset[CaseState]] = {
    CaseState.SUSPECT: frozenset({CaseState.QUARANTINED, CaseState.DRAINING, CaseState.CLOSED, CaseState.RETIRED}),
    CaseState.QUARANTINED: frozenset(
        {
            CaseState.SUSPECT, CaseState.DRAINING, CaseState.DRAIN_BLOCKED, CaseState.DRAINED, CaseState.PROBATION,
            CaseState.RETIRED,
        }
    ),
    CaseState.DRAINING: frozenset(
        {
            CaseState.SUSPECT, CaseState.QUARANTINED, CaseState.DRAIN_BLOCKED, CaseState.DRAINED, CaseState.PROBATION,
            CaseState.RETIRED,
        }
    ),
    CaseState.DRAIN_BLOCKED: frozenset(
        {CaseState.SUSPECT, CaseState.DRAINING, CaseState.DRAINED, CaseState.PROBATION, CaseState.RETIRED}
    ),
    CaseState.DRAINED: frozenset(
        {CaseState.SUSPECT, CaseState.QUARANTINED, CaseState.DRAINING, CaseState.PROBATION, CaseState.RETIRED}
    ),
    CaseState.PROBATION: frozenset({CaseState.SUSPECT, CaseState.CLOSED, CaseState.RETIRED}),
    CaseState.CLOSED: frozenset(),
    CaseState.RETIRED: frozenset(),
}  # fmt: skip
FINAL = frozenset({CaseState.CLOSED, CaseState.RETIRED})
CORDONED = frozenset({CaseState.QUARANTINED, CaseState.DRAINING, CaseState.DRAIN_BLOCKED, CaseState.DRAINED})
PROBATION_FOR = timedelta(hours=72)
ENGINE = "engine"  # the actor of moves that no person asked for

TITLES: Mapping[CaseState, str] = {
    CaseState.SUSPECT: "Suspect",
    CaseState.QUARANTINED: "Quarantined",
    CaseState.DRAINING: "Draining",
    CaseState.DRAIN_BLOCKED: "Drain blocked",
    CaseState.DRAINED: "Drained",
    CaseState.PROBATION: "Back in service, on probation",
    CaseState.CLOSED: "Closed",
    CaseState.RETIRED: "Retired",
}
NEXT: Mapping[CaseState, str] = {
    CaseState.SUSPECT: "Pods still start on the node. Quarantine it, or close the case.",
    CaseState.QUARANTINED: "New pods do not start on the node. Drain it next, or release it.",
    CaseState.DRAINING: "Pods are being evicted. The case continues by itself.",
    CaseState.DRAIN_BLOCKED: "The drain stopped. Drain again with another deadline or consent, or release the node.",
    CaseState.DRAINED: "No pod of a tenant is left. Repair the node, then release it.",
    CaseState.PROBATION: "Pods start on the node. The case closes by itself if the fault does not return.",
    CaseState.CLOSED: "The case is over.",
    CaseState.RETIRED: "The case is over. Quarterdeck's cordon stays while the node exists.",
}


@dataclass(frozen=True)
class NodeOperation:
    """An operation on the node of a case."""

    number: int
    kind: str  # of `operations.commands.KINDS`
    progress: NodeProgress
    is_evicting: bool  # its drain step has begun
    actor: str
    reason: str  # of the actor
    result: str  # what it waits for, or the result


@dataclass(frozen=True)
class CaseFacts:
    """The facts of a case and its node, from rows."""

    state: CaseState
    since: datetime
    node_name: str
    fault: str = ""  # the newest fault of the node since it has this state
    is_fault_open: bool = False  # the finding that opened the case is still open
    gone: str = ""  # why the node is no longer there
    is_seen: bool = True  # the node has a row
    is_unschedulable: bool = False
    has_quarantine: bool = False  # Quarterdeck wants its cordon on the node
    is_quarantined: bool = False  # that cordon was read back
    begun: NodeOperation | None = None  # the newest operation that has begun on the node
    newest: NodeOperation | None = None  # the newest one, begun or not

    @property
    def is_busy(self) -> bool:
        return self.newest is not None and self.newest.progress in (NodeProgress.PENDING, NodeProgress.RUNNING)

    @property
    def is_uncordoned(self) -> bool:
        """Returns whether somebody else removed Quarterdeck's cordon."""
        return self.state in CORDONED and self.is_quarantined and self.is_seen and not self.is_unschedulable

    @property
    def obstacle(self) -> str:
        """Returns what the case waits for, or what contradicts its state. Blank: nothing."""
        if self.state in FINAL:
            return ""
        if not self.is_seen:
            return "The node is not seen in its cluster."
        if self.is_uncordoned:
            return "Somebody else uncordoned the node. Quarantine it again, or release it to keep it in service."
        if self.state == CaseState.PROBATION and self.is_fault_open:
            return "The finding that opened the case is still open."
        if self.newest is None or self.state == CaseState.PROBATION:
            return ""
        is_refused = self.newest.progress == NodeProgress.FAILED or (
            self.newest.kind == "quarantine" and self.newest.progress == NodeProgress.DONE and not self.has_quarantine
        )
        return self.newest.result if self.is_busy or is_refused else ""


@dataclass(frozen=True)
class NextMove:
    to: CaseState
    reason: str
    by: NodeOperation | None = None  # None: the engine

    @property
    def actor(self) -> str:
        return self.by.actor if self.by else ENGINE


def next_move(case: CaseFacts, *, now: datetime) -> NextMove | None:
    """Returns the move that follows from the facts. None: the case waits for a person or an operation."""
    if case.state in FINAL:
        return None
    if case.gone:
        return NextMove(CaseState.RETIRED, case.gone)
    if case.state == CaseState.PROBATION:
        return _after_return(case, now=now)
    if case.state in CORDONED and not case.has_quarantine:
        return _after_cordon(case)
    if case.state == CaseState.SUSPECT and not case.is_quarantined:
        return None
    return _after_operation(case)


def _after_return(case: CaseFacts, *, now: datetime) -> NextMove | None:
    if case.fault:
        return NextMove(CaseState.SUSPECT, f"The fault returned: {case.fault}")
    if now - case.since >= PROBATION_FOR and not case.is_fault_open:
        return NextMove(CaseState.CLOSED, f"No fault for {spell(PROBATION_FOR)} after the return.")
    return None


def _after_cordon(case: CaseFacts) -> NextMove:
    begun = case.begun
    if begun and begun.kind == "release" and begun.progress == NodeProgress.DONE:
        return NextMove(CaseState.PROBATION, f"Released: {begun.reason}", begun)
    return NextMove(CaseState.SUSPECT, "Quarterdeck's cordon ended. " + (begun.result if begun else ""))


def _after_operation(case: CaseFacts) -> NextMove | None:
    begun = case.begun
    to = _state_of(case.state, begun)
    if to is None or to == case.state:
        return None
    if begun is None:
        return NextMove(to, "The node was quarantined already.")
    return NextMove(to, f"{begun.kind.capitalize()}: {begun.reason} {begun.result}".strip(), begun)


def _state_of(state: CaseState, begun: NodeOperation | None) -> CaseState | None:
    """Returns the state that the newest operation leads to. None: none."""
    if begun and begun.kind == "drain" and (begun.is_evicting or begun.progress == NodeProgress.DONE):
        after_drain = {
            NodeProgress.RUNNING: CaseState.DRAINING,
            NodeProgress.DONE: CaseState.DRAINED,
            NodeProgress.FAILED: CaseState.DRAIN_BLOCKED,
            NodeProgress.CANCELLED: CaseState.QUARANTINED,
        }
        to = after_drain.get(begun.progress)
        return to if to in CASE_MOVES[state] else CaseState.QUARANTINED if state == CaseState.SUSPECT else None
    is_cordoned_again = begun and begun.kind == "quarantine" and begun.progress == NodeProgress.DONE
    if state == CaseState.SUSPECT or (state == CaseState.DRAINED and is_cordoned_again):
        return CaseState.QUARANTINED
    return None


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
        CaseAct(
            "drain", "Drain",
            frozenset({CaseState.SUSPECT, CaseState.QUARANTINED, CaseState.DRAIN_BLOCKED}), "drain",
        ),
        CaseAct("release", "Release", CORDONED - {CaseState.DRAINING}, "release"),
        CaseAct(
            "close", "Close the case", frozenset({CaseState.SUSPECT, CaseState.PROBATION}),
            says="The node stays in service.",
        ),
        CaseAct(
            "retire", "Retire", frozenset(CaseState) - FINAL,
            says="The node does not return to service. Quarterdeck's cordon, if there is one, stays.",
        ),
    )
}  # fmt: skip


def acts_of(case: CaseFacts) -> list[CaseAct]:
    """Returns the acts that are possible now, the next step first. None while an operation is in progress."""
    if case.is_busy:
        return []
    possible = [act for act in ACTS.values() if case.state in act.states]
    return [ACTS["quarantine"], *possible] if case.is_uncordoned else possible
