"""The states of a case, its facts, and the moves that follow from them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from operations.kinds import ENDING_KINDS, title_of
from operations.lifecycle import NodeProgress
from wording.durations import spell
from wording.sentences import with_period


class CaseState(StrEnum):
    PROVISIONED = "provisioned"  # a new node: Quarterdeck's cordon keeps pods off until the checklist holds
    STACK_VALIDATED = "stack-validated"  # the checklist of its GPU stack holds
    LABELLED = "labelled"  # has the labels and taints that its pool requires
    TESTED = "tested"  # the test workload passed on all GPUs
    SUSPECT = "suspect"  # a person suspects the node; nothing is written to it
    QUARANTINED = "quarantined"  # Quarterdeck's cordon keeps new pods off
    DRAINING = "draining"  # an operation evicts its pods
    DRAIN_BLOCKED = "drain-blocked"  # the drain failed; a person decides
    DRAINED = "drained"  # the drain is over; pods of DaemonSets stay
    IN_REPAIR = "in-repair"  # an actor was asked to repair it, and has not answered, or the answer is not proven
    VALIDATING = "validating"  # repaired, or drained and tested: a test must pass before it returns
    PROBATION = "probation"  # back in service; the next sign of the fault reopens the case
    CLOSED = "closed"  # in service, or never sick
    RETIRED = "retired"  # does not return; or the node left the cluster


S = CaseState  # for the table
FROM_NEW = frozenset({S.QUARANTINED, S.CLOSED, S.RETIRED})
CASE_MOVES: Mapping[CaseState, frozenset[CaseState]] = {
    S.PROVISIONED: FROM_NEW | {S.STACK_VALIDATED},
    S.STACK_VALIDATED: FROM_NEW | {S.LABELLED},
    S.LABELLED: FROM_NEW | {S.TESTED},
    S.TESTED: FROM_NEW | {S.LABELLED},
    S.SUSPECT: frozenset({S.QUARANTINED, S.DRAINING, S.CLOSED, S.RETIRED}),
    S.QUARANTINED: frozenset(
        {S.SUSPECT, S.DRAINING, S.DRAIN_BLOCKED, S.DRAINED, S.IN_REPAIR, S.PROBATION, S.RETIRED}
    ),
    S.DRAINING: frozenset({S.SUSPECT, S.QUARANTINED, S.DRAIN_BLOCKED, S.DRAINED, S.PROBATION, S.RETIRED}),
    S.DRAIN_BLOCKED: frozenset({S.SUSPECT, S.DRAINING, S.DRAINED, S.IN_REPAIR, S.PROBATION, S.RETIRED}),
    S.DRAINED: frozenset(
        {S.SUSPECT, S.QUARANTINED, S.DRAINING, S.IN_REPAIR, S.VALIDATING, S.PROBATION, S.RETIRED}
    ),
    S.IN_REPAIR: frozenset({S.QUARANTINED, S.DRAIN_BLOCKED, S.DRAINED, S.VALIDATING, S.RETIRED}),
    S.VALIDATING: frozenset({S.SUSPECT, S.DRAINED, S.PROBATION, S.RETIRED}),
    S.PROBATION: frozenset({S.SUSPECT, S.CLOSED, S.RETIRED}),
    S.CLOSED: frozenset(),
    S.RETIRED: frozenset(),
}  # fmt: skip
NEW = frozenset({S.PROVISIONED, S.STACK_VALIDATED, S.LABELLED, S.TESTED})  # never in service
FINAL = frozenset({CaseState.CLOSED, CaseState.RETIRED})
CORDONED = frozenset({S.QUARANTINED, S.DRAINING, S.DRAIN_BLOCKED, S.DRAINED, S.VALIDATING})
PROBATION_FOR = timedelta(hours=72)
RESULTS = (("passed", "passed"), ("failed", "failed"), ("unknown", "unknown"))  # of a validation
MOST_REBOOTS = 2  # of one case
ENGINE = "engine"  # the actor of moves that no person asked for

TITLES: Mapping[CaseState, str] = {
    CaseState.PROVISIONED: "Provisioned",
    CaseState.STACK_VALIDATED: "Stack validated",
    CaseState.LABELLED: "Labelled and tainted",
    CaseState.TESTED: "Test workload passed",
    CaseState.SUSPECT: "Suspect",
    CaseState.QUARANTINED: "Quarantined",
    CaseState.DRAINING: "Draining",
    CaseState.DRAIN_BLOCKED: "Drain blocked",
    CaseState.DRAINED: "Drained",
    CaseState.IN_REPAIR: "In repair",
    CaseState.VALIDATING: "Validating",
    CaseState.PROBATION: "Back in service, on probation",
    CaseState.CLOSED: "Closed",
    CaseState.RETIRED: "Retired",
}
NEXT: Mapping[CaseState, str] = {
    CaseState.PROVISIONED: "The checklist of the node decides next.",
    CaseState.STACK_VALIDATED: "The labels and taints of its pool are compared next.",
    CaseState.LABELLED: "A test runs on all GPUs next.",
    CaseState.TESTED: "The node is released next.",
    CaseState.SUSPECT: "Pods still start on the node. Quarantine it, or close the case.",
    CaseState.QUARANTINED: "New pods do not start on the node. Drain it next.",
    CaseState.DRAINING: "Pods are being evicted. The case continues by itself.",
    CaseState.DRAIN_BLOCKED: "The drain stopped. Drain again with another deadline or consent, or return the node.",
    CaseState.DRAINED: "Ask for a repair, or run a test. Pods of DaemonSets stay.",
    CaseState.IN_REPAIR: "The case waits for the answer to the repair.",
    CaseState.VALIDATING: "A test must pass before the node returns.",
    CaseState.PROBATION: "Pods start on the node. The case closes after 72 h of observation without the fault.",
    CaseState.CLOSED: "The case is over.",
    CaseState.RETIRED: "The case is over, and the cordon stays. Open another case to bring the node back.",
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
    result: str  # reason for waiting, or the result
    asked_at: datetime | None = None
    serves: bool = False  # Quarterdeck did not cordon it: the new node already serves pods

    @property
    def title(self) -> str:
        return title_of(self.kind)


@dataclass(frozen=True)
class TestFacts:
    """The newest test Job on the node with a result."""

    operation: int
    test: str  # title of the test
    outcome: str  # of RESULTS
    sentence: str  # with the last words of its container
    began_at: datetime
    ended_at: datetime
    why_no_validation: str = ""  # why its pass does not count; blank: it does


class RepairKind(StrEnum):
    REBOOT = "reboot"  # proven by the node's boot ID
    GPU_RESET = "gpu-reset"  # the node keeps running
    HARDWARE = "hardware"
    OTHER = "other"


NOT_LOOKED = "not-looked"  # in the history of a case: whose work was unknown when a repair was sent
CHOICE_ENDED = "chosen-ended"  # in the history of a case: why the chosen steps after a repair ended early
NO_LOGS = "no-logs"  # in the history of a case: why no logs were collected before a repair


class RepairAnswer(StrEnum):
    DONE = "done"
    REFUSED = "refused"  # for sure not done: it may be asked again
    UNCLEAR = "unclear"  # nobody knows; Quarterdeck never repeats it


@dataclass(frozen=True)
class RepairFacts:
    """A repair that is not over."""

    kind: RepairKind
    answer: str  # of RepairAnswer; blank: none yet
    asked_by: str
    deadline: datetime
    boot_id: str  # of the node when it was asked
    came_from: CaseState
    is_overdue: bool = False
    by: str = "A person"  # title of the actor
    waiting: str = ""  # one sentence while the actor works
    ends_at_deadline: bool = False  # an actor that is no person is waited for no longer
    says: str = ""  # reason why the request waits


@dataclass(frozen=True)
class ChosenAfterRepair:
    """The steps that a person chose with the newest repair: a test, and perhaps the release after a pass."""

    by: str
    releases: bool
    has_ended: bool  # early, while the case had its present state
    says: str  # why they wait, or ended
    until: str = ""  # the time at which a wait ends the choice

    @property
    def sentence(self) -> str:
        """Returns the next steps after the repair."""
        release = f" After a pass the node is released, as {self.by} chose." if self.releases else ""
        return f"A test then starts by itself.{release}"


@dataclass(frozen=True)
class CaseFacts:
    """The facts of a case and its node, from rows."""

    state: CaseState
    since: datetime
    node_name: str
    fault: str = ""  # a fault of the node that is newer than the case's last one
    fault_seen_at: datetime | None = None
    is_fault_open: bool = False  # the finding that opened the case is still open
    gone: str = ""  # why the node is no longer there
    is_seen: bool = True  # the node has a row
    is_unschedulable: bool = False
    # By kind of operation: why the node's page does not offer it. Blank: it does. Without an entry: it is not seen.
    offers: Mapping[str, str] = field(default_factory=dict)
    is_ready: bool = True
    lacks: str = ""  # the devices that a test would miss now; blank: none
    boot_id: str = ""
    booted_at: datetime | None = None  # when its last boot was seen; None: none was
    fault_at: datetime | None = None  # of the case's last fault
    repaired_at: datetime | None = None  # end of the last repair
    passed_at: datetime | None = None  # of the last validation that passed
    failed_at: datetime | None = None  # time of its last failure
    overridden_at: datetime | None = None  # when a person allowed the return without a validation
    overridden_by: str = ""
    is_automatic: bool = False  # its next steps are automatic
    waits_for: str = ""  # what a new node lacks
    handed_over: str = ""  # why the automatic steps ended in this state; blank: they did not
    repair: RepairFacts | None = None
    chosen: ChosenAfterRepair | None = None  # None: nothing was chosen, or it is over
    needs: str = ""  # the tests that exercise the fault, as a sentence
    test: TestFacts | None = None  # with a result that the case does not have yet
    has_quarantine: bool = False  # Quarterdeck wants its cordon on the node
    is_quarantined: bool = False  # that cordon was read back
    is_cordon_removed: bool = False  # a later read showed that somebody else removed the cordon
    begun: NodeOperation | None = None  # the newest operation that has begun on the node
    newest: NodeOperation | None = None  # the newest one, begun or not

    @property
    def is_busy(self) -> bool:
        return self.newest is not None and self.newest.progress in (NodeProgress.PENDING, NodeProgress.RUNNING)

    @property
    def is_uncordoned(self) -> bool:
        """Returns whether somebody else removed Quarterdeck's cordon. A row alone may be older than the cordon."""
        is_kept_off = self.state in CORDONED | NEW or self.state == CaseState.IN_REPAIR
        return is_kept_off and self.is_cordon_removed and self.is_seen and not self.is_unschedulable

    @property
    def is_chosen(self) -> bool:
        """Returns whether the next step after the repair is one that a person chose with it."""
        return self.chosen is not None and not self.chosen.has_ended

    @property
    def title(self) -> str:
        """Returns the state. A node after its repair waits for a test, is tested, or waits for its release."""
        if self.state != CaseState.VALIDATING:
            return TITLES[self.state]
        if self.is_busy and self.newest is not None and self.newest.kind in ("test", "release"):
            return "Being tested" if self.newest.kind == "test" else "Being released"
        return "Waits for a test" if self.why_no_return else "Waits for its release"

    @property
    def next_step(self) -> str:
        return self._step_by_itself or self._step_of_person

    @property
    def is_followed(self) -> bool:
        """Returns whether the next round moves the case or takes a result, so that its state is about the past.

        Such a case offers no acts of its state, and its sentence names what follows.
        """
        return self.state not in FINAL and (self.test is not None or self._move_at_once is not None)

    @property
    def _move_at_once(self) -> NextMove | None:
        """Returns the move that follows from the facts alone. Moves that wait for a time are not among them."""
        return next_case_move(self, now=self.since)

    @property
    def _step_by_itself(self) -> str:
        """Returns the next step of an operation, an actor or a person's earlier choice. Blank: a person does it."""
        if self.is_busy and self.newest is not None and self.state not in NEW and self.state != CaseState.DRAINING:
            goes = "is in progress" if self.newest.progress == NodeProgress.RUNNING else "starts next"
            return f"The {self.newest.kind} {goes}. The case continues by itself when it ends."
        if self.is_followed:
            return self._step_of_round
        chosen = self.chosen if self.is_chosen else None
        if self.state == CaseState.IN_REPAIR and self.repair and self.repair.answer == RepairAnswer.DONE:
            return "The case continues by itself once the node has booted and is Ready."
        if self.state == CaseState.IN_REPAIR and self.repair and self.repair.waiting:
            return f"{self.repair.waiting} {chosen.sentence if chosen else ''}".strip()
        if self.state != CaseState.VALIDATING or chosen is None or (not self.why_no_return and not chosen.releases):
            return ""
        if self.why_no_return:
            return chosen.sentence
        return f"The node is released {'then' if chosen.says else 'next'}, as {chosen.by} chose."

    @property
    def _step_of_round(self) -> str:
        """Returns what the next round of the case does."""
        move = self._move_at_once
        if move is None:
            return "The test has ended. The case takes its result within seconds."
        has_ended = move.by is not None and move.by.progress not in (NodeProgress.PENDING, NodeProgress.RUNNING)
        ended = f"The {move.by.kind} has ended. " if move.by and has_ended else ""
        return f"{ended}The state changes within seconds to: {TITLES[move.to].lower()}."

    @property
    def _step_of_person(self) -> str:
        if self.state in NEW:
            return "" if self.waits_for else NEXT[self.state]
        may_return = self.state in CORDONED - {CaseState.DRAINING} and not self.why_no_return
        if may_return and self.is_fault_open:
            return "The finding that opened the case is still open. Look at it before you release the node."
        if may_return:
            return "The node may return. Release it."
        is_tested_next = self.state in (CaseState.DRAINED, CaseState.VALIDATING)
        return f"{NEXT[self.state]} {self.needs}".strip() if is_tested_next else NEXT[self.state]

    @property
    def is_rebooted(self) -> bool:
        """Returns whether the node booted since the reboot was asked, and is Ready in the same report (Z44)."""
        before = self.repair.boot_id if self.repair else ""
        return bool(before and self.boot_id and self.boot_id != before and self.is_ready)

    @property
    def why_unvalidated(self) -> str:
        """Returns why no validation allows the return. Blank: one does."""
        if self.failed_at and (self.passed_at is None or self.failed_at >= self.passed_at):
            return "The last validation failed."
        if self.passed_at is None:
            return "No validation has passed."
        if self.repaired_at and self.repaired_at > self.passed_at:
            return "No validation has passed since the last repair."
        if self.fault_at and self.fault_at > self.passed_at:
            return "No validation has passed since the last fault."
        if self._boot_at and self._boot_at > self.passed_at:
            return "No validation has passed since the node booted."
        return ""

    @property
    def _boot_at(self) -> datetime | None:
        """Returns the last boot that voids a validation. None: none does, such as one of a node in service."""
        return None if self.state == CaseState.PROBATION else self.booted_at

    @property
    def is_overridden(self) -> bool:
        """Returns whether a person allowed the return after the last fault, repair, boot and failed validation."""
        later = (self.fault_at, self.repaired_at, self._boot_at, self.failed_at)
        return self.overridden_at is not None and all(each is None or each <= self.overridden_at for each in later)

    @property
    def lacks_validation(self) -> bool:
        """Returns whether a person allowed the return, and no validation counts."""
        return self.overridden_at is not None and self.why_unvalidated != ""

    @property
    def why_no_return(self) -> str:
        """Returns why the node may not be released. Blank: it may."""
        if self.state in FINAL or (self.state == CaseState.PROBATION and not self.fault):
            return ""
        if self.state == CaseState.IN_REPAIR:
            return "A repair is in progress."
        return "" if self.is_overridden else self.why_unvalidated

    @property
    def obstacle(self) -> str:
        """Returns the reason why the case waits, or the contradiction to its state. Blank: neither."""
        if self.state in FINAL:
            return ""
        if not self.is_seen:
            return "The node is not seen in its cluster."
        if self.is_uncordoned:
            return "Somebody else uncordoned the node. Quarantine it again, or accept the uncordon."
        if self.state in NEW and self.waits_for and not self.is_busy:
            return self.waits_for
        if self.state == CaseState.PROBATION and self.lacks_validation:
            return f"Returned without a validation. {self.why_unvalidated}"
        if self.state == CaseState.PROBATION and self.is_fault_open:
            return "The finding that opened the case is still open."
        if waits_for := self._waits_for():
            return waits_for
        if self.newest is None or self.state == CaseState.PROBATION:
            return ""
        if self.newest.kind == "test" and not self.is_busy and not self.why_no_return:
            return ""  # a later validation, or an override, allows the return
        is_refused = self.newest.progress == NodeProgress.FAILED or (
            self.newest.kind == "quarantine" and self.newest.progress == NodeProgress.DONE and not self.has_quarantine
        )
        return self.newest.result if self.is_busy or is_refused else ""

    def _waits_for(self) -> str:
        """Returns why the repair, or a step that was chosen with it, waits."""
        if self.repair is None:
            if self.chosen is None or not self.chosen.says or self.is_busy:
                return ""
            waits = f"The {'test' if self.why_no_return else 'release'} waits, at most until {self.chosen.until}:"
            ended = "The steps chosen with the repair ended."
            return f"{ended if self.chosen.has_ended else waits} {self.chosen.says}"
        repair = self.repair
        if repair.is_overdue:
            return f"The repair is overdue: {repair.asked_by} asked for it. Answer it."
        if repair.answer == RepairAnswer.DONE:
            is_same = self.boot_id == repair.boot_id
            why = "its boot ID has not changed." if is_same else "it has not been Ready since it booted."
            return f"The answer is done, but no reboot is proven: {why}"
        return repair.says


@dataclass(frozen=True)
class NextMove:
    to: CaseState
    reason: str
    by: NodeOperation | None = None  # None: the engine

    @property
    def actor(self) -> str:
        return self.by.actor if self.by else ENGINE


def next_case_move(case: CaseFacts, *, now: datetime) -> NextMove | None:
    """Returns the move that follows from the facts. None: the case waits for a person or an operation."""
    if case.state in FINAL:
        return None
    if case.gone:
        return NextMove(CaseState.RETIRED, case.gone)
    if case.state == CaseState.PROBATION:
        return _after_return(case, now=now)
    if case.state == CaseState.IN_REPAIR:
        return _after_repair(case, now=now)
    if case.state in NEW:
        return _new_node_move(case)
    if case.state in CORDONED and not case.has_quarantine:
        return _after_cordon(case)
    if case.state == CaseState.SUSPECT and not case.is_quarantined:
        return None
    return _after_operation(case)


def after_validation(state: CaseState, result: str) -> CaseState | None:
    """Returns the state after a validation. None: it does not change."""
    match state, result:
        case CaseState.DRAINED, "passed":
            return CaseState.VALIDATING
        case CaseState.LABELLED, "passed":
            return CaseState.TESTED
        case ((CaseState.LABELLED | CaseState.TESTED), "failed"):
            return CaseState.QUARANTINED
        case CaseState.VALIDATING, "failed":
            return CaseState.DRAINED
        case CaseState.PROBATION, "failed":
            return CaseState.SUSPECT
    return None


def _new_node_move(case: CaseFacts) -> NextMove | None:
    begun = case.begun
    if begun is None or begun.progress not in (NodeProgress.RUNNING, NodeProgress.DONE):
        return None
    if begun.kind in ENDING_KINDS and begun.progress == NodeProgress.DONE and not case.has_quarantine:
        return NextMove(CaseState.CLOSED, f"In service: {begun.reason}", begun)
    if begun.kind == "drain" and begun.is_evicting and case.has_quarantine:
        return NextMove(CaseState.QUARANTINED, f"A drain was started: {begun.reason}", begun)
    return None


def _after_repair(case: CaseFacts, *, now: datetime) -> NextMove | None:
    repair = case.repair
    if repair is None:
        return None
    if repair.kind == RepairKind.REBOOT and case.is_rebooted:
        return NextMove(CaseState.VALIDATING, "The node rebooted: its boot ID changed, and it is Ready.")
    if repair.ends_at_deadline and now >= repair.deadline:
        why = "The reboot is not proven" if repair.answer else f"{repair.by} has not answered"
        return NextMove(repair.came_from, f"{why} by the deadline. The repair counts as unclear, and is not repeated.")
    return None


def _after_return(case: CaseFacts, *, now: datetime) -> NextMove | None:
    if case.fault:
        return NextMove(CaseState.SUSPECT, f"The fault returned: {case.fault}")
    if now - case.since >= PROBATION_FOR and not case.is_fault_open and not case.lacks_validation:
        return NextMove(CaseState.CLOSED, f"No fault for {spell(PROBATION_FOR)} after the return.")
    return None


def _after_cordon(case: CaseFacts) -> NextMove:
    begun = case.begun
    if begun and begun.kind in ENDING_KINDS and begun.progress == NodeProgress.DONE:
        how = "Uncordoned by somebody else, and accepted" if begun.kind == "accept-uncordon" else "Released"
        return NextMove(CaseState.PROBATION, f"{how}: {begun.reason}", begun)
    return NextMove(CaseState.SUSPECT, "Quarterdeck's cordon ended. " + (begun.result if begun else ""))


def _after_operation(case: CaseFacts) -> NextMove | None:
    begun = case.begun
    to = _state_of(case.state, begun)
    if to is None or to == case.state:
        return None
    if begun is None:
        return NextMove(to, "The node was quarantined already.")
    result = begun.result if begun.progress in (NodeProgress.DONE, NodeProgress.FAILED) else ""
    return NextMove(to, f"{begun.kind.capitalize()}: {with_period(begun.reason)} {result}".strip(), begun)


def _state_of(state: CaseState, begun: NodeOperation | None) -> CaseState | None:
    """Returns the state that the newest operation leads to. None: none."""
    if state == CaseState.VALIDATING:
        return None  # its drain has ended
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
    is_drain_over = begun is not None and begun.kind != "drain" and begun.progress != NodeProgress.RUNNING
    back_to_quarantine = {
        CaseState.SUSPECT: True, CaseState.DRAINED: is_cordoned_again, CaseState.DRAINING: is_drain_over,
    }  # fmt: skip
    if back_to_quarantine.get(state):
        return CaseState.QUARANTINED
    return None
