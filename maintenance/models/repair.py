from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from fleet.models import Cluster, Pool
from maintenance.actors import ACTORS
from maintenance.actors.base import ClusterActor
from maintenance.actors.person import Person
from maintenance.lifecycle import RepairAnswer, RepairKind
from maintenance.models.case import LONGEST_REASON, NodeCase
from operations.models.leased import Leased

IN_CLUSTER = sorted(actor.key for actor in ACTORS.values() if isinstance(actor, ClusterActor))
ASKED = sorted(actor.key for actor in ACTORS.values() if actor.is_asked)


class RepairQuerySet(models.QuerySet["Repair"]):
    def open(self) -> RepairQuerySet:
        return self.filter(ended_at=None)

    def chosen(self) -> RepairQuerySet:
        """Returns ended repairs whose chosen steps have not ended."""
        return self.filter(then_test=True, then_ended_at=None, ended_at__isnull=False)

    def end_chosen_steps(self, reason: str, *, now: datetime) -> int:
        """Ends the steps that were chosen with these repairs. Returns how many choices it ended."""
        chosen = self.filter(then_test=True, then_ended_at=None)
        return chosen.update(then_ended_at=now, then_says=reason[:LONGEST_REASON])

    def to_withdraw(self) -> RepairQuerySet:
        """Returns repairs that ended without success, while their request may still be in the cluster."""
        over = self.filter(ended_at__isnull=False, sent_at__isnull=False, withdrawn_at=None, by__in=IN_CLUSTER)
        return over.exclude(answer=RepairAnswer.DONE)

    def to_ask(self) -> RepairQuerySet:
        """Returns the repairs that a worker asks an actor for, or reads its answer of."""
        return self.open().filter(answer="", by__in=ASKED)

    def due(self, *, now: datetime) -> RepairQuerySet:
        return (self.to_ask() | self.to_withdraw()).filter(next_look_at__lte=now)


class Repair(Leased):
    """A repair that an actor was asked for, with the answer. The case waits for it.

    The row is the intent: `sent_at` is written before the first write to the actor.
    """

    lease_for = timedelta(seconds=60)  # longer than a request may take
    round_task = "maintenance.tasks.run_repair"

    case = models.ForeignKey(NodeCase, models.CASCADE, related_name="repairs")
    by = models.CharField(max_length=32, default=Person.key)  # key of the actor
    kind = models.CharField(max_length=16, choices=[(kind.value, kind.value) for kind in RepairKind])
    request = models.CharField(max_length=36, blank=True)  # id that an answer names; blank: an old row
    asked_by = models.CharField(max_length=150)
    asked_at = models.DateTimeField()
    note = models.CharField(max_length=LONGEST_REASON)
    ticket = models.CharField(max_length=100, blank=True)  # number of the ticket
    link = models.CharField(max_length=500, blank=True)  # of the ticket
    deadline = models.DateTimeField()
    came_from = models.CharField(max_length=16)  # the state to which a repair that is not done returns
    boot_id = models.CharField(max_length=64, blank=True)  # of the node when it was asked; blank: not reported
    sent_at = models.DateTimeField(null=True)  # when the first write to the actor began; null: none did
    accepted_at = models.DateTimeField(null=True)  # when it was read back that the actor has the request
    withdrawn_at = models.DateTimeField(null=True)  # when the request was read as finished or removed
    says = models.CharField(max_length=LONGEST_REASON, blank=True)  # reason why it waits
    answer = models.CharField(max_length=16, blank=True, choices=[(each.value, each.value) for each in RepairAnswer])
    answered_by = models.CharField(max_length=150, blank=True)
    answer_note = models.CharField(max_length=LONGEST_REASON, blank=True)
    ended_at = models.DateTimeField(null=True)  # null: no answer, or a reboot that is not proven
    # Steps that the asker chose for after it: a test once it is proven, and a release after a pass.
    then_test = models.BooleanField(db_default=False, default=False)
    then_release = models.BooleanField(db_default=False, default=False)
    then_ended_at = models.DateTimeField(null=True)  # null: these steps are still to come, or none were chosen
    then_says = models.CharField(max_length=LONGEST_REASON, db_default="", blank=True)  # why they wait, or ended early
    late_answer = models.CharField(max_length=16, blank=True)  # the first one after the end; it changes nothing

    objects = RepairQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["case"], condition=Q(ended_at=None), name="one_repair_at_a_time_per_case"),
            models.UniqueConstraint(fields=["request"], condition=~Q(request=""), name="one_repair_per_request"),
        ]
        indexes = [
            models.Index(fields=["next_look_at"], condition=Q(ended_at=None), name="repairs_due"),
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.kind} of {self.case}"

    @property
    def actor_title(self) -> str:
        return ACTORS[self.by].title if self.by in ACTORS else self.by

    def its_row(self) -> RepairQuerySet:
        return (Repair.objects.to_ask() | Repair.objects.to_withdraw()).filter(pk=self.pk)

    def end_lease(self, *, now: datetime, next_look_at: datetime, says: str) -> None:
        """Ends the lease with what the repair waits for."""
        mine = Repair.objects.filter(pk=self.pk, epoch=self.epoch)
        mine.update(lease_until=now, next_look_at=next_look_at)
        if says != self.says:
            mine.filter(ended_at=None).update(says=says[:LONGEST_REASON])


class RepairKinds(models.Model):
    """The kinds of objects that ask controllers of a cluster for repairs, as discovery found them."""

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="repair_kinds")
    why_not = models.JSONField(default=dict)  # by kind: why no object of it can be made; blank: it can
    looked_at = models.DateTimeField(null=True)
    sentinel_seen_at = models.DateTimeField(
        null=True
    )  # when the cluster last served NVSentinel's kind; null: it does not

    def __str__(self) -> str:
        return f"repair kinds of {self.cluster}"


class RepairReceiver(models.Model):
    """The program that gets the signed repair requests of a cluster, or of one pool. It contains no secret."""

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="repair_receivers")
    pool = models.ForeignKey(Pool, models.CASCADE, null=True, related_name="repair_receivers")  # null: all others
    address = models.CharField(max_length=300)
    secret_from = models.CharField(max_length=300)  # "env:NAME" or "file:NAME", never the secret
    ca_file = models.CharField(max_length=300, blank=True)
    changed_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster"], condition=Q(pool=None), name="one_receiver_per_cluster"),
            models.UniqueConstraint(fields=["pool"], condition=Q(pool__isnull=False), name="one_receiver_per_pool"),
        ]
        ordering = ["cluster_id", "pool_id"]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.pool}" if self.pool else str(self.cluster)
