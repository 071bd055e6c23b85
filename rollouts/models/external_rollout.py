from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType

from django.db import models, transaction
from django.db.models import Q

from edges.transitions import write_move
from fleet.models import Cluster
from fleet.models.visible import Visible
from operations.models.leased import Leased
from rollouts.components import component_of
from rollouts.components.base import Component
from rollouts.gates.base import Answer
from rollouts.lifecycle import EXTERNAL_ROLLOUT_MOVES, EXTERNAL_ROLLOUT_OPEN, ExternalRolloutState, TargetState
from rollouts.messages import announce
from rollouts.models.gate_answer import KeptAnswer
from rollouts.models.plan import Plan

NO_FACTS: Mapping[str, str] = MappingProxyType({})
LEASE = timedelta(seconds=15)  # a round reads rows alone; a killed worker costs this much
MOST_FAILURES = 20  # failures that one rollout lists: a gate may fail repeatedly


class ExternalRolloutQuerySet(Visible["ExternalRollout"]):
    """External rollouts are visible to those who see the cluster, since they touch nodes of any pool."""

    def open(self) -> ExternalRolloutQuerySet:
        return self.filter(state__in=EXTERNAL_ROLLOUT_OPEN)

    def due(self, *, now: datetime) -> ExternalRolloutQuerySet:
        return self.open().filter(next_look_at__lte=now)

    def told(self) -> ExternalRolloutQuerySet:
        return self.exclude(state=ExternalRolloutState.STANDING)


class ExternalRollout(Leased):
    """A driver object in a cluster of the mode `follow`, with its external rollout once one begins."""

    lease_for = LEASE

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="external_rollouts")
    component = models.CharField(max_length=32, default="driver")
    object_kind = models.CharField(max_length=63)
    object_name = models.CharField(max_length=253)
    object_uid = models.CharField(max_length=64)
    # previously requested version; blank: no change in progress, or unknown
    from_version = models.CharField(max_length=64, blank=True)
    to_version = models.CharField(max_length=64, blank=True)  # asked for; blank: the operator's own default
    driven_by = models.CharField(max_length=500, blank=True)  # owner of the object by its marks; blank: none

    state = models.CharField(max_length=16)
    state_since = models.DateTimeField()
    reason = models.CharField(max_length=1000, blank=True)  # of the last move, for a person

    began_at = models.DateTimeField(null=True)  # when it was first observed; null: no change in progress
    ended_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)  # the last round that had a fresh picture; null: none had

    objects = ExternalRolloutQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "object_uid"],
                condition=Q(state__in=sorted(EXTERNAL_ROLLOUT_OPEN)),
                name="one_external_rollout_open_per_object",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_look_at"],
                condition=Q(state__in=sorted(EXTERNAL_ROLLOUT_OPEN)),
                name="external_rollouts_due",
            ),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"external rollout {self.pk} of {self.object_kind} {self.object_name}"

    @property
    def its_component(self) -> Component:
        return component_of(self.component, self.object_kind, self.object_name)

    @property
    def is_open(self) -> bool:
        """Returns the same as the query `open`."""
        return ExternalRolloutState(self.state) in EXTERNAL_ROLLOUT_OPEN

    def failed_before(self) -> list[ExternalGateAnswer]:
        """Returns earlier failures of gates, where a plan would have halted, the newest first. One query."""
        over = self.answers.filter(is_current=False, answer=Answer.FAIL).order_by("-pk")
        return list(over[:MOST_FAILURES])

    def its_row(self) -> ExternalRolloutQuerySet:
        return ExternalRollout.objects.open().filter(pk=self.pk)

    def end_lease(self, *, now: datetime, next_look_at: datetime) -> None:
        """Ends the lease. An earlier time for the next round, set by a wake, stays."""
        mine = ExternalRollout.objects.filter(pk=self.pk, epoch=self.epoch)
        mine.update(lease_until=now)
        mine.filter(next_look_at__gt=now).update(next_look_at=next_look_at)

    def move(self, to: ExternalRolloutState, *, now: datetime, reason: str, **columns: str | datetime) -> None:
        """Moves the rollout to another state.

        :raises IllegalMove, LostRace: as every move
        """
        was, kept = ExternalRolloutState(self.state), {"state_since": now, "reason": reason[:1000], **columns}
        if not EXTERNAL_ROLLOUT_MOVES[to]:
            kept["ended_at"] = now
        with transaction.atomic():
            write_move(self, EXTERNAL_ROLLOUT_MOVES, was, to, **kept)
            self.tell()
        self.state = to
        for column, value in kept.items():
            setattr(self, column, value)

    def tell(self) -> None:
        """Notifies browsers after the commit; the epoch counts the notifications."""
        cluster_id, epoch = self.cluster_id, self.epoch
        transaction.on_commit(lambda: announce.external_rollouts_changed(cluster_id, epoch), robust=True)


class ExternalRolloutNode(models.Model):
    """A node of an external rollout with its observed state.

    `released` has not begun, `held` has a skip label, `excluded` is removed or no longer selected.
    """

    rollout = models.ForeignKey(ExternalRollout, models.CASCADE, related_name="nodes")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    state = models.CharField(max_length=16, choices=[(state.value, state.value) for state in TargetState])
    state_since = models.DateTimeField()
    baseline = models.JSONField(null=True)  # the node when it was last seen not to have begun; null: it never was
    pod_hash = models.CharField(max_length=63, blank=True)  # of its driver pod then; blank: nobody knows
    is_lost = models.BooleanField(default=False)  # its node disappeared after it began: counts as failed

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rollout", "node_uid"], name="one_external_rollout_node_per_node")
        ]
        ordering = ["rollout_id", "node_name"]

    retried_at = None  # nobody asks us for another try of it
    tenants_ready_at = None  # only present pods count: no gate delays anything here
    facts = NO_FACTS


class ExternalGateAnswer(KeptAnswer):
    """A gate result of an external rollout: one current row per gate, and one per past failure."""

    rollout = models.ForeignKey(ExternalRollout, models.CASCADE, related_name="answers")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["rollout", "gate"], condition=Q(is_current=True), name="one_current_answer_per_external_gate"
            ),
        ]
        ordering = ["rollout_id", "gate", "-pk"]


Rollout = Plan | ExternalRollout  # subject of a gate


def wake_external_rollouts(cluster_id: int, *, now: datetime) -> None:
    """Makes the cluster's external rollouts due now. The row decides; the message is only a hint."""
    sleeping = ExternalRollout.objects.open().filter(cluster=cluster_id, next_look_at__gt=now)
    for pk in sleeping.values_list("pk", flat=True):
        if ExternalRollout.objects.filter(pk=pk, next_look_at__gt=now).update(next_look_at=now):
            ExternalRollout.queue_round(pk)
