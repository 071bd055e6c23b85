from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from edges.transition_errors import LostRace
from fleet.models import Pool
from fleet.models.visible import Visible
from health.models import Finding
from maintenance.models.case import LONGEST_REASON, NodeCase
from maintenance.triggers import TRIGGERS, AutomaticVerdict, BreakerState, Mode, lower_mode


class AutomaticQuerySet(Visible["AutomaticQuarantine"]):
    by_cluster = "pool__cluster"

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pool__in=pool_ids)


class AutomaticQuarantine(models.Model):
    """The mode and the breaker of a pool's automatic quarantine. Without a row it is off."""

    pool = models.OneToOneField(Pool, models.CASCADE, related_name="automatic_quarantine")
    mode = models.CharField(max_length=16, default=Mode.OFF.value, choices=[(mode.value, mode.value) for mode in Mode])
    mode_since = models.DateTimeField()
    changed_by = models.CharField(max_length=150)
    reason = models.CharField(max_length=LONGEST_REASON)  # of the last change of the mode
    breaker = models.CharField(max_length=16, default=BreakerState.CLOSED.value)
    breaker_since = models.DateTimeField()
    breaker_reason = models.CharField(max_length=LONGEST_REASON, blank=True)
    # Key of CAUSES: why several nodes of the cluster fail at once; blank: open for another reason, or not open.
    breaker_cause = models.CharField(max_length=32, db_default="", default="", blank=True)
    storm_since = models.DateTimeField(null=True)  # the first breaker of this cause opened; null: no cause, or unknown
    evidence_after = models.DateTimeField()  # earlier findings start nothing: the last change of mode or reset
    epoch = models.PositiveBigIntegerField(default=0)  # counts the acts and the changes
    drain_since = models.DateTimeField(null=True)  # nodes are also drained automatically; null: they are not
    drain_by = models.CharField(max_length=150, db_default="", blank=True)  # who switched it on
    repair_since = models.DateTimeField(null=True)  # drained nodes are also repaired; null: they are not
    repair_by = models.CharField(max_length=150, db_default="", blank=True)
    repair_through = models.CharField(max_length=32, db_default="", blank=True)  # key of the actor

    rule_modes = models.JSONField(default=dict, db_default={})  # limits of rules below the mode, by key of TRIGGERS
    rules_raised_at = models.JSONField(default=dict, db_default={})  # by key of TRIGGERS: the last raise of its limit
    # Of the pool and of rules that were off: since when it is tried, and who skipped the rest (`maintenance.trials`).
    trials = models.JSONField(default=dict, db_default={})

    objects = AutomaticQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(breaker__in=[state.value for state in BreakerState]), name="a_breaker_has_a_known_state"
            ),
        ]
        ordering = ["pool_id"]

    def __str__(self) -> str:
        return self.mark

    @property
    def mark(self) -> str:
        """Returns its name in the audit chain."""
        return f"automatic-quarantine-{self.pool_id}"

    def mode_of(self, rule: str) -> Mode:
        """Returns the mode of one rule: the pool's, or its own limit."""
        return lower_mode(Mode(self.mode), Mode(self.rule_modes.get(rule, Mode.ACT)))

    def counts_from(self, rule: str) -> datetime:
        """Returns since when findings of a rule may start something: a change of the mode, a reset or a raise."""
        raised = self.rules_raised_at.get(rule)
        return max(self.evidence_after, datetime.fromisoformat(raised)) if raised else self.evidence_after

    @property
    def idle_rules(self) -> Collection[str]:
        """Returns the rules that act on nothing: their decisions are records."""
        return [each.key for each in TRIGGERS if self.mode_of(each.key) in (Mode.OFF, Mode.SHADOW)]

    @property
    def off_rules(self) -> Collection[str]:
        return [rule for rule, mode in self.rule_modes.items() if mode == Mode.OFF]

    @property
    def is_breaker_closed(self) -> bool:
        return self.breaker == BreakerState.CLOSED

    def same(self) -> AutomaticQuerySet:
        """Returns its row if nobody has changed it since it was read."""
        return AutomaticQuarantine.objects.filter(pk=self.pk, epoch=self.epoch, mode=self.mode, breaker=self.breaker)

    def change(self, **columns: Any) -> None:
        """:raises LostRace: when somebody changed it first"""
        if not self.same().update(epoch=self.epoch + 1, **columns):
            raise LostRace("The automatic quarantine of the pool was changed at the same time.")
        for name, value in {"epoch": self.epoch + 1, **columns}.items():
            setattr(self, name, value)


class AutomaticDecision(models.Model):
    """A decision of the automatic quarantine about one finding. A finding is decided once."""

    automatic = models.ForeignKey(AutomaticQuarantine, models.CASCADE, related_name="decisions")
    at = models.DateTimeField()
    finding = models.OneToOneField(Finding, models.SET_NULL, null=True, related_name="automatic_decision")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    trigger = models.CharField(max_length=32)  # key of TRIGGERS
    verdict = models.CharField(max_length=16, choices=[(each.value, each.value) for each in AutomaticVerdict])
    reason = models.CharField(max_length=LONGEST_REASON)
    evidence = models.JSONField(default=dict)  # version of the table, the finding, the numbers of the breaker
    case = models.ForeignKey(NodeCase, models.SET_NULL, null=True, related_name="automatic_decisions")

    class Meta:
        indexes = [models.Index(fields=["automatic", "-at"], name="decisions_of_automatic")]
        ordering = ["-at", "-pk"]

    def __str__(self) -> str:
        return f"{self.verdict} {self.node_name}"
