"""The switches of automatic drains and repairs, their facts per case, and what they would have done."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any

from django.db import transaction

from edges.transition_errors import LostRace
from fleet.models import Pool
from gpu.cordons import SENTINEL_WORKS
from gpu.labels import SENTINEL_STATE
from health.models import Finding
from maintenance.actors import ACTORS
from maintenance.actors.base import RepairActor
from maintenance.automatic import ACTOR, SWITCHES_OFF, backtest, matches_of, why_not_now
from maintenance.fault_tests import USUAL
from maintenance.lifecycle import CaseFacts, RepairKind
from maintenance.models import AutomaticDecision, AutomaticQuarantine, NodeCase
from maintenance.queries import other_owner, pool_scope
from maintenance.refusals import CaseRefused
from maintenance.repeat_offenders import why_replace
from maintenance.step_choice import (
    DRAINED_AFTER,
    LONGEST_WAIT,
    AutomaticFacts,
    AutomaticStep,
    StepChoice,
    choose_step,
    hand_over,
    repair_kind,
    wait_for,
)
from maintenance.triggers import RULES, TITLES, BreakerNumbers, BreakerState, Mode, SameCauses, WouldAct
from operations.impact import why_a_person_decides
from operations.models import OperationNode
from operations.pool_tests import has_image
from operations.restraints import freezes_of
from operations.test_jobs.node_tests import NODE_TESTS
from people.models import AuditEntry
from wording.instants import to_the_minute

# A machine is asked for these only; a ticket for hardware is a person's decision.
AUTOMATIC_KINDS = frozenset({RepairKind.REBOOT, RepairKind.GPU_RESET})
MACHINES = {key: actor for key, actor in ACTORS.items() if actor.is_asked and actor.kinds & AUTOMATIC_KINDS}
SINCE_OVER = frozenset({"gpu-xid", "node-flapping"})  # rules whose findings may be open after the fault
DEADLINE_H = 2  # of an automatic repair; NVSentinel gives up after 25 min


def set_switches(
    pool: Pool, *, drain: bool, repair: str = "", actor: str, reason: str, now: datetime
) -> AutomaticQuarantine:
    """Switches automatic drains and repairs of a pool. `repair`: key of the actor; blank: off.

    Open cases start nothing.

    :raises CaseRefused: when the mode is not act, the actor cannot be asked, or somebody changed it first
    """
    row = AutomaticQuarantine.objects.select_related("pool__cluster").filter(pool=pool).first()
    if row is None or row.mode != Mode.ACT:
        raise CaseRefused(
            f"Drains and repairs need mode act. The mode of pool {pool.name} is {row.mode if row else 'off'}."
        )
    if repair and not drain:
        raise CaseRefused("Only a drained node is repaired. Switch the drain on too.")
    if repair and (why_not := MACHINES[repair].why_not(pool_scope(pool))):
        raise CaseRefused(f"{MACHINES[repair].title}: {why_not}")
    if repair and not has_image(NODE_TESTS[USUAL[0]].image, cluster_id=pool.cluster_id, pool_id=pool.pk):
        raise CaseRefused(
            "No test has an image, so no node could return. Set QUARTERDECK_TEST_IMAGES or the pool's images first."
        )
    was = {"drain": row.drain_since is not None, "repair": row.repair_through}
    columns: dict[str, Any] = {}
    if drain != was["drain"]:
        columns |= {"drain_since": now, "drain_by": actor} if drain else SWITCHES_OFF
    if repair != was["repair"]:
        columns |= {"repair_since": now if repair else None, "repair_by": actor if repair else ""}
        columns |= {"repair_through": repair}
    with transaction.atomic():
        try:
            row.change(**columns)
        except LostRace as lost:
            raise CaseRefused(f"{lost} Read it again.") from lost
        AuditEntry.record(
            row.mark, verb="automatic-quarantine.switches", actor=actor, reason=reason, now=now,
            evidence={"from": was, "to": {"drain": drain, "repair": repair}},
        )  # fmt: skip
    return row


def machines_of(pool: Pool) -> list[tuple[RepairActor, str]]:
    """Returns each actor of automatic repairs with the reason why it cannot be asked. Blank: it can. Three queries."""
    place = pool_scope(pool)
    return [(actor, actor.why_not(place)) for actor in MACHINES.values()]


@dataclass(frozen=True)
class AutomaticCase:
    """A case with automatic steps, the setting of its pool, and its next step."""

    case: NodeCase
    row: AutomaticQuarantine | None  # None: the pool or its setting was deleted
    decision: AutomaticDecision | None
    choice: StepChoice

    @property
    def rule(self) -> str:
        return TITLES.get(self.decision.trigger, self.decision.trigger) if self.decision else "unknown"

    def switch(self, step: AutomaticStep) -> tuple[str, datetime | None]:
        """Returns who switched on what allows a step, and when."""
        if self.row is None:
            return "", None
        if step == AutomaticStep.DRAIN:
            return self.row.drain_by, self.row.drain_since
        return self.row.repair_by, self.row.repair_since

    @property
    def sentence(self) -> str:
        """Returns who set the switches."""
        parts = [
            f"{name} switched on by {by}, {to_the_minute(since)}"
            for name, step in (("Drain", AutomaticStep.DRAIN), ("repair", AutomaticStep.REPAIR))
            for by, since in [self.switch(step)]
            if since is not None
        ]
        return "; ".join(parts) + "." if parts else ""


def automatic_case(case: NodeCase, facts: CaseFacts, *, now: datetime) -> AutomaticCase:
    """Returns a case with its next automatic step. At most 16 queries, and 13 more before a drain."""
    decisions = case.automatic_decisions.select_related("automatic__pool__cluster").order_by("-pk")
    decision = decisions.first()
    row = decision.automatic if decision else None
    choice = choose_step(facts, _facts_of(case, row, decision), now=now)
    if row is not None and choice.step not in (AutomaticStep.WAIT, AutomaticStep.HAND_OVER):
        choice = _doubt(case, row, choice.step, now=now) or choice
    return AutomaticCase(case, row, decision, choice)


def _doubt(case: NodeCase, row: AutomaticQuarantine, step: AutomaticStep, *, now: datetime) -> StepChoice | None:
    """Returns the reason for waiting instead of the step. None: the step may start."""
    if why := _why_wait(case, now=now):
        return wait_for(why)
    node = row.pool.nodes.select_related("cluster").filter(uid=case.node_uid).first()
    if node is None:
        return hand_over(f"The node left pool {row.pool.name}.")
    if step == AutomaticStep.DRAIN and (why := why_a_person_decides(node, now=now)):
        return hand_over(why)
    if step == AutomaticStep.RELEASE and (why := _still_wrong(case)):
        is_late = now - case.state_since > LONGEST_WAIT
        return hand_over(why) if is_late else wait_for(why)
    if step in (AutomaticStep.DRAIN, AutomaticStep.REPAIR) and (
        why := _common_cause(case, since=row.evidence_after, now=now)
    ):
        return hand_over(why)
    return None


def _still_wrong(case: NodeCase) -> str:
    """Returns the other open sign of broken hardware on the node, such as a pending remap. Blank: none. One query.

    The gauge of an Xid outlasts the fault, and a count of flaps looks back: neither is one.
    """
    its = Finding.objects.open().filter(cluster=case.cluster_id, node__uid=case.node_uid, rule__in=RULES - SINCE_OVER)
    title = its.order_by("opened_at").values_list("title", flat=True).first()
    return f"The test passed, and another finding is open: {title}" if title else ""


def _common_cause(case: NodeCase, *, since: datetime, now: datetime) -> str:
    """Returns the nodes that show the cause of the case at about the same time. Blank: too few. One query.

    No breaker counts nodes of other pools, or nodes about which nothing is decided.
    """
    by_node = matches_of(case.cluster, now=now)
    causes = SameCauses(chain.from_iterable(by_node.values()))
    for own in by_node.get(case.node_uid, ()):
        alike = causes.nodes_like(own, after=since)
        if why := BreakerNumbers(nodes=1, in_cases=0, last_hour=0, same_cause=alike).why_trip:
            return why
    return ""


def _why_wait(case: NodeCase, *, now: datetime) -> str:
    """Returns why no automatic step starts now. Blank: one may."""
    node = case.cluster.nodes.filter(uid=case.node_uid).first()
    state = node.labels.get(SENTINEL_STATE, "") if node else ""
    if state in SENTINEL_WORKS:
        return f"NVSentinel works on the node ({state})."
    frozen = freezes_of(case.cluster_id, [case.node_uid], now=now).get(case.node_uid, "")
    return why_not_now(case.cluster, now=now) or frozen or other_owner(case.node_uid, now=now)


def _facts_of(case: NodeCase, row: AutomaticQuarantine | None, decision: AutomaticDecision | None) -> AutomaticFacts:
    repairs = list(case.repairs.order_by("pk"))
    since = case.repaired_at or case.opened_at
    tests = OperationNode.objects.of_kinds("test").filter(node_uid=case.node_uid, operation__asked_by=ACTOR)
    tests = tests.filter(operation__asked_at__gte=since)
    through = row.repair_through if row and row.repair_since and row.repair_since <= case.opened_at else ""
    return AutomaticFacts(
        machine=ACTOR,
        trigger=decision.trigger if decision else "",
        why_off=_why_off(case, row),
        through=through,
        able=MACHINES[through].kinds & AUTOMATIC_KINDS if through in MACHINES else (),
        why_blocked=_why_blocked(case, row),
        answers=[repair.answer for repair in repairs],
        asked_by=next((repair.asked_by for repair in repairs if repair.asked_by != ACTOR), ""),
        overridden_by=case.overridden_by if case.overridden_at else "",
        tests=tests.count(),
        repaired_before=why_replace(case),
    )


def _why_off(case: NodeCase, row: AutomaticQuarantine | None) -> str:
    if row is None or row.drain_since is None or row.mode != Mode.ACT:
        return "Automatic steps of the pool were switched off."
    return "They were switched on after the case began." if row.drain_since > case.opened_at else ""


def _why_blocked(case: NodeCase, row: AutomaticQuarantine | None) -> str:
    if row is None or row.breaker == BreakerState.OPEN:
        return f"The breaker is open: {row.breaker_reason}" if row else ""
    return "The breaker was reset since the case began." if case.opened_at < row.evidence_after else ""


@dataclass(frozen=True)
class WouldDo:
    """An act that mode act would have done, with what both switches add."""

    act: WouldAct
    is_drained: bool
    repair: str  # a kind; blank: none

    @property
    def sentence(self) -> str:
        if self.act.reason:
            return f"blocked: {self.act.reason}"
        done = ["cordoned"] + (["drained"] if self.is_drained else []) + ([self.repair] if self.repair else [])
        return ", ".join(done)


def would_do(pool: Pool, *, through: str = "", now: datetime) -> Sequence[WouldDo]:
    """Returns the further acts of the switches in the last 30 days, newest first. `through`: an actor; blank: any.

    A drain needs a finding that is still open at its time. A repair counts at most once: no test of then is stored.
    """
    able = MACHINES[through].kinds if through else AUTOMATIC_KINDS
    found = []
    for each in backtest(pool, now=now):
        drained_at = each.at + DRAINED_AFTER
        is_drained = not each.reason and drained_at <= now and each.match.sign.is_open(drained_at)
        kind = repair_kind(each.match.trigger.key, 0, able) if is_drained else None
        found.append(WouldDo(each, is_drained, kind.value if kind else ""))
    return found
