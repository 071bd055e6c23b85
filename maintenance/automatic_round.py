"""Automatic quarantine: cordons a node on signs of that node alone, under a breaker (Z20). Off by default.

It uses the cases and the operations of people. Returns, releases and the acts of people never ask it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from itertools import chain

import structlog
from django.db import IntegrityError, transaction
from django.db.models import Q

from edges.transition_errors import LostRace
from fleet.models import Node
from health.evaluation.node_properties import NodeProperties, properties_of
from health.models import Finding
from health.rules.telemetry_silent import TelemetrySilent
from maintenance import commands
from maintenance.automatic import (
    ACTOR,
    change_mode,
    matches_of,
    numbers_of,
    set_breaker,
    shared_by,
    why_not_now,
    why_wait,
)
from maintenance.models import AutomaticDecision, AutomaticQuarantine
from maintenance.probation import observed_for
from maintenance.refusals import CaseRefused
from maintenance.trials import acceptance_of
from maintenance.triggers import (
    DAY,
    MODE_ORDER,
    SAME_CAUSE,
    VERSION,
    WATCHED,
    AutomaticVerdict,
    BreakerNumbers,
    BreakerState,
    Match,
    Mode,
    SameCauses,
    last_decided,
)
from operations import commands as operations
from operations.impact import why_a_person_decides
from operations.ledger.disruptions import read_budgets
from operations.refusals import OperationRefused
from wording.durations import spell

log = structlog.get_logger()
MOST_A_ROUND = 100  # decisions of a pool; the next round makes the others


def run_automatic_quarantine(*, now: datetime) -> None:
    """Decides about the findings of every pool that is not off. One query if all are off."""
    for row in AutomaticQuarantine.objects.exclude(mode=Mode.OFF).select_related("pool__cluster").order_by("pk"):
        with suppress(LostRace):  # a person changed it; the next round reads it again
            PoolRound(row, now=now).go()


class PoolRound:
    def __init__(self, row: AutomaticQuarantine, *, now: datetime) -> None:
        self.row, self.now = row, now
        self.recorded = 0  # decisions of this round
        self.cluster = row.pool.cluster
        self.by_node: Mapping[str, Sequence[Match]] = {}
        self.causes = SameCauses([])

    def go(self) -> None:
        """:raises LostRace: when somebody changed the row"""
        if why_not_now(self.cluster, now=self.now):
            return  # a cluster that nobody sees proves nothing about the first act either
        self._close_after_watch()
        self.by_node = matches_of(self.cluster, off=self.row.off_rules, now=self.now)
        self.causes = SameCauses(chain.from_iterable(self.by_node.values()))
        mine = set(self.row.pool.nodes.filter(uid__in=list(self.by_node)).values_list("uid", flat=True))
        new = [match for uid, its in self.by_node.items() if uid in mine and (match := self._highest_new(its))]
        signs = [sign.finding for match in new for sign in match.signs]
        decisions = AutomaticDecision.objects.filter(finding__in=signs)
        decided, idle = set[int | None](), self.row.idle_rules
        recorded = set[int | None]()  # by rules that act on nothing: a rule that acts still decides about the finding
        for finding, trigger, case in decisions.values_list("finding", "trigger", "case"):
            (recorded if trigger in idle and case is None else decided).add(finding)
        for match in sorted(new, key=lambda match: (match.sign.opened_at, match.sign.finding)):
            done = decided | recorded if match.trigger.key in idle else decided
            if match.sign.finding not in done and self.recorded < MOST_A_ROUND:
                self._decide(match, after=max(self._counts_from(match), last_decided(match, done)))
        self._fall_back()

    def _highest_new(self, matches: Sequence[Match]) -> Match | None:
        """Returns the match in the highest mode, the first of several. A rule in shadow mode hides no other."""
        new = [each for each in matches if self.causes.is_due(each, after=self._counts_from(each), now=self.now)]
        return max(new, key=lambda match: MODE_ORDER.index(self.row.mode_of(match.trigger.key)), default=None)

    def _counts_from(self, match: Match) -> datetime:
        return self.row.counts_from(match.trigger.key)

    def _decide(self, match: Match, *, after: datetime) -> None:
        """Decides about the signs newer than `after`, the time of the last decision, change of mode or reset."""
        if not self.causes.is_due(match, after=after, now=self.now):
            return
        node = Node.objects.select_related("cluster").get(cluster=self.cluster, uid=match.sign.node_uid)
        if why_wait(node, now=self.now):
            return
        alike = self.causes.nodes_like(match, after=after)
        shared = shared_by(self._properties, alike) if len(alike) >= SAME_CAUSE else ""
        numbers = numbers_of(self.row, alike=alike, shared=shared, now=self.now)
        is_shadow = self.row.mode_of(match.trigger.key) == Mode.SHADOW
        if numbers.why_trip and self.row.breaker != BreakerState.OPEN and not is_shadow:
            self._trip(numbers.why_trip, cause=numbers.cause_of_trip(match.trigger.key))
        blocked = self._why_blocked(node)
        if is_shadow and numbers.why_trip:
            blocked = blocked or f"In mode act the breaker would open: {numbers.why_trip}"
        if blocked:
            self._record(match, AutomaticVerdict.BLOCKED, blocked, numbers)
        elif is_shadow:
            self._record(match, AutomaticVerdict.SHADOW, "Shadow mode: nothing is done.", numbers)
        else:
            self._act(node, match, numbers)

    @cached_property
    def _properties(self) -> Mapping[str, NodeProperties]:
        """Returns the properties of the cluster's GPU nodes. Three queries, and only in a storm."""
        of_gpus = Q(is_gpu_node=True) | ~Q(gpu_product="")
        return properties_of(Node.objects.filter(of_gpus, cluster=self.cluster), self.cluster.pk)

    def _why_blocked(self, node: Node) -> str:
        if self.row.breaker == BreakerState.OPEN:
            return f"The breaker is open: {self.row.breaker_reason}"
        if self.row.breaker == BreakerState.HALF_OPEN and self._acts_since_reset():
            return f"The breaker is half-open and watches its first act for {spell(WATCHED)}."
        acted = AutomaticDecision.objects.filter(node_uid=node.uid, at__gt=self.now - DAY, case__isnull=False)
        if acted.exists():
            return "The node had an automatic case in the last 24 h."
        full = read_budgets(self.cluster.pk, [node.name], is_rollback=False).why_not([node.name])
        return full or why_a_person_decides(node, now=self.now)

    def _acts_since_reset(self) -> list[AutomaticDecision]:
        verdicts = [AutomaticVerdict.SUGGESTED, AutomaticVerdict.ACTED]
        return list(self.row.decisions.filter(at__gte=self.row.breaker_since, verdict__in=verdicts).order_by("at")[:1])

    def _act(self, node: Node, match: Match, numbers: BreakerNumbers) -> None:
        """Opens a case, and quarantines the node in mode act. All of it or nothing.

        :raises LostRace: when the mode or the breaker changed, or another round decided about the finding
        """
        finding = Finding.objects.get(pk=match.sign.finding)
        reason = f"{match.trigger.title}: {match.sign.title}"
        is_acting = self.row.mode_of(match.trigger.key) == Mode.ACT
        try:
            with transaction.atomic():
                self.row.change()
                verdict = AutomaticVerdict.ACTED if is_acting else AutomaticVerdict.SUGGESTED
                says = "Case opened and node cordoned." if is_acting else "Case opened. A person quarantines the node."
                decision = self._record(match, verdict, says, numbers)
                case = commands.open_case(node, actor=ACTOR, reason=reason, finding=finding, now=self.now)
                case.record(
                    "automatic", actor=ACTOR, reason=f"{says} {numbers.sentence}", now=self.now,
                    evidence=decision.evidence,
                )  # fmt: skip
                AutomaticDecision.objects.filter(pk=decision.pk).update(case=case)
                if is_acting and self.row.drain_since:
                    case.write(automatic_at=self.now)
                if is_acting:
                    key = f"automatic-{decision.pk}"
                    operations.start(
                        self.cluster, "quarantine", [node], actor=ACTOR, reason=reason, key=key, now=self.now
                    )
        except (CaseRefused, OperationRefused) as refusal:
            self.row.refresh_from_db()
            self._record(match, AutomaticVerdict.BLOCKED, str(refusal), numbers)

    def _record(
        self, match: Match, verdict: AutomaticVerdict, reason: str, numbers: BreakerNumbers
    ) -> AutomaticDecision:
        """:raises LostRace: when another round decided about the finding"""
        sign = match.sign
        self.recorded += 1
        evidence = {
            "version": VERSION, "rule": match.trigger.key, "source": match.trigger.source,
            "finding": sign.finding, "title": sign.title, "breaker": self.row.breaker,
            "numbers": numbers.sentence, "same_cause": list(numbers.same_cause)[:100],
        }  # fmt: skip
        try:
            with transaction.atomic():
                if match.trigger.key not in (idle := self.row.idle_rules):
                    records = AutomaticDecision.objects.filter(finding=sign.finding, trigger__in=idle, case=None)
                    records.update(finding=None)
                return AutomaticDecision.objects.create(
                    automatic=self.row, at=self.now, finding_id=sign.finding, node_uid=sign.node_uid,
                    node_name=sign.node_name, trigger=match.trigger.key, verdict=verdict, reason=reason[:1000],
                    evidence=evidence,
                )  # fmt: skip
        except IntegrityError as clash:
            raise LostRace("Another round decided about the finding.") from clash

    def _trip(self, reason: str, *, cause: str) -> None:
        set_breaker(self.row, BreakerState.OPEN, actor=ACTOR, reason=reason, cause=cause, now=self.now)
        log.warning("the breaker of automatic quarantine opened", pool=self.row.pool.name, reason=reason)

    def _close_after_watch(self) -> None:
        if self.row.breaker != BreakerState.HALF_OPEN:
            return
        acts, silent = self._acts_since_reset(), Q(rule=TelemetrySilent.key)
        if acts and observed_for(self.cluster.pk, silent, since=acts[0].at, now=self.now) >= WATCHED:
            reason = f"Nothing happened for {spell(WATCHED)} after the first act."
            set_breaker(self.row, BreakerState.CLOSED, actor=ACTOR, reason=reason, now=self.now)

    def _fall_back(self) -> None:
        """Ends mode act when people accept too few of its decisions."""
        if self.row.mode == Mode.ACT and (accepted := acceptance_of(self.row)).is_too_low:
            change_mode(self.row.pool, mode=Mode.SUGGEST, actor=ACTOR, reason=accepted.sentence, now=self.now)
