from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import OperationalError, models, transaction
from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import JSONObject

from edges.locks import is_lock_timeout, lock_unheld, wait_for_locks
from fleet.models import Cluster, DomainEvent
from fleet.models.visible import Visible
from operations.models import Disruption
from operations.models.leased import Leased
from rollouts.components import component_of
from rollouts.components.base import Component
from rollouts.lifecycle import BEGUN, PLAN_FINAL, PLAN_MOVES, PLAN_UNDER_WAY, PlanState, StageState
from rollouts.models.command import PendingCommand
from rollouts.models.traffic import DRAIN, UNDRAIN, call_traffic_hook
from rollouts.models.transitions import Moving

WEEK_S = 7 * 24 * 3600
MARK = "plan-"  # prefix of `Plan.mark`
LEASE = timedelta(seconds=15)  # a round talks to the cluster for a few seconds; a killed worker costs this much
# Kinds of `fleet.event_kinds`.
STARTED, HALTED, RESUMED, FINISHED = "plan.started", "plan.halted", "plan.resumed", "plan.finished"
EVENTS: Mapping[StrEnum, str] = {
    PlanState.HALTED: HALTED,
    PlanState.ROLLING_BACK: "plan.rolling-back",
    PlanState.ABORTING: "plan.aborting",
    PlanState.PROMOTED: FINISHED,
    PlanState.ROLLED_BACK: FINISHED,
    PlanState.ABORTED: FINISHED,
}


def _event_of_move(was: str, to: StrEnum) -> str:
    """Returns the kind of the move's event; blank: none."""
    if was == PlanState.DRAFT and to == PlanState.HOLDING:
        return STARTED
    if was == PlanState.HALTED and to in (PlanState.HOLDING, PlanState.PROMOTING):
        return RESUMED
    return EVENTS.get(to, "")


def plan_of_mark(mark: str) -> int | None:
    """Returns the key of the plan that the mark names; None if it names another owner."""
    number = mark.removeprefix(MARK)
    return int(number) if number != mark and number.isdecimal() else None


class PlanQuerySet(Visible["Plan"]):
    """Plans are visible to those who see the cluster, since they touch every node of a driver object."""

    def under_way(self) -> PlanQuerySet:
        return self.filter(state__in=PLAN_UNDER_WAY)

    def with_pending_stop(self) -> PlanQuerySet:
        """Adds `pending_stop`: a halt or pause in force before the plan's own rows show it; null if none."""
        first = PendingCommand.objects.restraining().filter(plan=OuterRef("pk")).order_by("pk")
        told = JSONObject(verb="verb", actor="actor", reason="reason")
        return self.annotate(pending_stop=Subquery(first.values(told=told)[:1]))

    def due(self, *, now: datetime) -> PlanQuerySet:
        return self.under_way().filter(next_look_at__lte=now)


class Plan(Moving, Leased):
    """A change of one component from one version to another in one cluster, in stages. Sealed at its start."""

    states = PlanState
    moves = PLAN_MOVES
    lease_for = LEASE

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="plans")
    title = models.CharField(max_length=200)
    component = models.CharField(max_length=32, default="driver")
    object_kind = models.CharField(max_length=63, default="NVIDIADriver")
    object_name = models.CharField(max_length=253)
    object_uid = models.CharField(max_length=64)
    from_version = models.CharField(max_length=64)
    to_version = models.CharField(max_length=64)

    author = models.CharField(max_length=150)
    last_editor = models.CharField(max_length=150)
    started_by = models.CharField(max_length=150, blank=True, default="")
    created_at = models.DateTimeField()
    edited_at = models.DateTimeField()
    revision = models.PositiveIntegerField(default=1)  # counts the edits of the draft

    sealed_at = models.DateTimeField(null=True)
    sealed = models.JSONField(default=dict)  # object, revisions, targets by stage, rollback: as they were at the start
    content_hash = models.CharField(max_length=64, blank=True)

    templates = models.JSONField(default=dict)  # of driver pods, as taken: digests of the spec, revisions by version
    template_change = models.JSONField(default=dict)  # later foreign changes of the template; empty: none

    # Version of somebody else to which a person releases the nodes of an aborted plan; blank: none.
    handed_to = models.CharField(max_length=64, blank=True, default="")

    write_intended_at = models.DateTimeField(null=True)  # from here on the new version may be in the cluster
    armed_since = models.DateTimeField(null=True)  # the new version was read back: a recreated driver pod takes it
    max_armed_s = models.PositiveIntegerField(
        default=WEEK_S
    )  # then a person is asked: an armed fleet changes by itself
    put_back_at = models.DateTimeField(null=True)  # the old version was read back

    # When a gate halts the plan, the engine cordons the affected nodes without waiting for a person.
    cordon_affected = models.BooleanField(default=False, db_default=False)

    # The slowest warm-up of GPU pods on its changed nodes, measured at its end: the pods go. Null: no pod told it.
    warm_up_s = models.FloatField(null=True)

    waiting_for = models.CharField(max_length=1000, blank=True)  # why it is not moving, in one sentence
    looked_at = models.DateTimeField(null=True)  # the last round that got through

    objects = PlanQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "object_uid"],
                condition=Q(state__in=sorted(PLAN_UNDER_WAY)),
                name="one_plan_under_way_per_object",
            ),
        ]
        indexes = [
            models.Index(fields=["next_look_at"], name="plans_due", condition=~Q(state__in=sorted(PLAN_FINAL))),
        ]
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.title} (plan-{self.pk})"

    @property
    def mark(self) -> str:
        """Returns the owner's name in our labels and annotations in the cluster."""
        return f"{MARK}{self.pk}"

    @property
    def its_component(self) -> Component:
        return component_of(self.component, self.object_kind, self.object_name)

    @property
    def command_back(self) -> str:
        """Returns the shell command that restores the old version without Quarterdeck."""
        return self.its_component.command(self.from_version)

    @property
    def proposers(self) -> frozenset[str]:
        """Returns the people who wrote, last edited and started it; they cannot approve it."""
        return frozenset({self.author, self.last_editor, self.started_by} - {""})

    @property
    def is_final(self) -> bool:
        return PlanState(self.state) in PLAN_FINAL

    @property
    def is_under_way(self) -> bool:
        return PlanState(self.state) in PLAN_UNDER_WAY

    @property
    def is_armed(self) -> bool:
        """Returns whether the cluster may have the new version: from the intent until the old version is read back.

        Of an ended plan it is False if somebody else has set the version or the object is removed.
        """
        return self.is_under_way and self.write_intended_at is not None and self.put_back_at is None

    def move(self, to: StrEnum, *, now: datetime, actor: str, reason: str) -> None:
        """Moves the plan. Its end frees its nodes and ledger places, and removes its pause."""
        was = self.state
        with transaction.atomic():
            super().move(to, now=now, actor=actor, reason=reason)
            self._call_traffic_hook(to, now=now, actor=actor, reason=reason)  # before the end that resolves its calls
            if kind := _event_of_move(was, to):
                DomainEvent.write([self.event_of(kind, now=now, actor=actor, reason=reason)])
            if to in PLAN_FINAL:
                self.holds.filter(ended_at__isnull=True).update(ended_at=now)
                Disruption.objects.filter(taken_by=self.mark).give_back(now=now)
                self.commands.in_force().update(ended_at=now, ended_by=actor)

    def _call_traffic_hook(self, to: StrEnum, *, now: datetime, actor: str, reason: str) -> None:
        """Drains harmed nodes on a halt, and undrains the nodes of all waves at the end."""
        if to == PlanState.HALTED:
            released = Q(targets__released_at__isnull=False)
            stages = self.stages.exclude(state=StageState.PASSED).filter(released & Q(targets__state__in=sorted(BEGUN)))
            kind = DRAIN
        elif to in PLAN_FINAL:
            stages, kind = self.stages.filter(targets__wave__isnull=False), UNDRAIN
        else:
            return
        if uids := list(stages.order_by().values_list("targets__node_uid", flat=True)):
            call_traffic_hook(kind, self, uids, now=now, actor=actor, reason=reason)

    def event_of(self, kind: str, *, now: datetime, actor: str, reason: str) -> DomainEvent:
        facts = {
            "plan": self.pk, "title": self.title, "severity": "note", "from": self.from_version, "to": self.to_version,
            "actor": actor, "reason": reason[:1000],
        }  # fmt: skip
        if kind == FINISHED:
            facts["state"] = self.state
        return DomainEvent.of(kind, f"plan/{self.pk}", cluster_id=self.cluster_id, at=now, facts=facts)

    @property
    def releases_to_foreign_version(self) -> bool:
        """Returns whether its releases lead to a foreign version or template."""
        began_from = self.sealed.get("revisions", {})
        return bool(self.handed_to) or self.templates.get("old", began_from) != began_from

    def event_subject(self) -> dict[str, models.Model]:
        return {"plan": self}

    def accept_template_change(self) -> bool:
        """Accepts a foreign template as the plan's own; returns whether there was one."""
        if not self.template_change:
            return False
        found = self.template_change
        templates = self.templates | {
            "spec": found["spec"],
            "old": self.templates.get("old", {}) | found["old"],
            "new": self.templates.get("new", {}) | found["new"],
        }
        if "owners" in found:  # written by a worker of this version
            templates["owners"] = found["owners"]
        Plan.objects.filter(pk=self.pk).update(templates=templates, template_change={})
        self.templates, self.template_change = templates, {}
        return True

    def its_row(self) -> PlanQuerySet:
        return Plan.objects.filter(pk=self.pk)

    def take_lease(self, *, owner: str, now: datetime) -> bool:
        """Takes the next round; returns False if another worker has it.

        The next round is set to the end of the lease: a crashed worker costs that much. A wake during the round moves
        it forward, which `end_lease` detects.
        """
        self.fallback_look_at = now + LEASE
        taken = super().take_lease(owner=owner, now=now)
        if taken:
            self.refresh_from_db(fields=["waiting_for"])  # for the comparison in `end_lease`: the text may have changed
        return taken

    def end_lease(self, *, now: datetime, next_look_at: datetime | None, waiting_for: str) -> bool:
        """Ends the lease; returns whether a wake came during the round. An empty sentence keeps the last one.

        A sentence that a command or freeze has made untrue is left to the next round.
        """
        mine = self.mine()
        looked = {"lease_until": now, "looked_at": now}
        says = waiting_for[:1000] or self.waiting_for
        untouched = mine.filter(waiting_for=self.waiting_for, next_look_at=self.fallback_look_at)
        if untouched.update(**looked, waiting_for=says, next_look_at=next_look_at):
            return False
        is_mine = mine.update(**looked) == 1
        mine.filter(waiting_for=self.waiting_for).update(waiting_for=says)
        is_unwoken = mine.filter(next_look_at=self.fallback_look_at).update(next_look_at=next_look_at) == 1
        return is_mine and not is_unwoken

    def say(self, sentence: str) -> None:
        """Sets the sentence about the wait after a command, until the next round."""
        Plan.objects.filter(pk=self.pk).update(waiting_for=sentence[:1000])

    def wake(self, *, now: datetime) -> None:
        """Makes the plan due now. It queues a message only if a row changed, so that many wakes are one message."""
        wake_plans(Plan.objects.filter(pk=self.pk), now=now)

    fallback_look_at: datetime  # set by `take_lease`


def wake_plans(plans: PlanQuerySet, *, now: datetime) -> None:
    """Makes plans due now. The row decides; the message is only a hint.

    It waits shortly for one locked plan, and not for a second one.
    """
    is_patient = True
    later = plans.under_way().filter(next_look_at__gt=now)
    with wait_for_locks():
        for plan_id in later.values_list("pk", flat=True):
            try:
                with transaction.atomic():
                    its = Plan.objects.filter(pk=plan_id, next_look_at__gt=now)
                    is_woken = (is_patient or lock_unheld(its)) and its.update(next_look_at=now)
            except OperationalError as held:
                if not is_lock_timeout(held):
                    raise
                is_patient = is_woken = False
            if is_woken:
                Plan.queue_round(plan_id)
