from __future__ import annotations

from django.db import models
from django.db.models import Q

from edges.idempotency import IdempotencyKey


class Verb(models.TextChoices):
    START = "start"
    PAUSE = "pause"  # in force until it is ended
    RESUME = "resume"
    HALT = "halt"
    ABORT = "abort"
    ROLLBACK = "rollback"
    COMPLETE = "complete"
    HANDOVER = "handover"
    EXCLUDE = "exclude"
    RETRY = "retry"
    CORDON = "cordon"  # the affected nodes of a halted plan


class CommandQuerySet(models.QuerySet["Command"]):
    def in_force(self) -> CommandQuerySet:
        return self.filter(verb=Verb.PAUSE, ended_at__isnull=True)

    def standing(self) -> CommandQuerySet:
        """Returns the commands in force: the pause, and the halt that led to the present state."""
        halted = Q(verb=Verb.HALT, at=models.F("plan__state_since"))
        return self.filter(halted | Q(verb=Verb.PAUSE, ended_at__isnull=True))

    def newest(self) -> int | None:
        """Returns the key of the newest command; None if there is none."""
        return self.order_by("-pk").values_list("pk", flat=True).first()


class Command(models.Model):
    """A command to a plan: who, when, why, and the state that its author saw."""

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="commands")
    verb = models.CharField(max_length=16, choices=Verb.choices)
    actor = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    key = models.CharField(max_length=100, blank=True)  # the actor's own: see `edges.idempotency`
    body_digest = models.CharField(max_length=64, blank=True, default="")  # of all that was asked with the key
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, blank=True)

    objects = CommandQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["plan", "actor", "key"], condition=~Q(key=""), name="one_command_per_key"),
            models.UniqueConstraint(
                fields=["plan"], condition=Q(verb="pause", ended_at__isnull=True), name="one_pause_in_force"
            ),
        ]
        ordering = ["-pk"]

    @property
    def idempotency_key(self) -> IdempotencyKey:
        return IdempotencyKey(self.key, self.actor, self.verb, self.body_digest)

    @property
    def sentence(self) -> str:
        """Returns who stopped the plan and why, for pages, lists and the engine."""
        return f"{self.actor} {'paused' if self.verb == Verb.PAUSE else 'halted'} the plan: {self.reason}"


class PendingVerb(models.TextChoices):
    HALT = Verb.HALT.value
    PAUSE = Verb.PAUSE.value
    STOP = "stop"
    FREEZE = "freeze"
    LIFT = "lift"


class PendingCommandQuerySet(models.QuerySet["PendingCommand"]):
    def restraining(self) -> PendingCommandQuerySet:
        """Returns halts and pauses; a stop or freeze restrains by its own row."""
        return self.filter(verb__in=(PendingVerb.HALT, PendingVerb.PAUSE))


class PendingCommand(models.Model):
    """A command that the plan's own rows do not show yet.

    A halt or pause is in force from the commit of this row. Its insert waits for no lock: it has no foreign key to the
    plan and no unique index but its primary key. It is deleted once the plan's rows show it.
    """

    plan = models.ForeignKey("rollouts.Plan", models.CASCADE, related_name="pending", db_constraint=False)
    verb = models.CharField(max_length=16, choices=PendingVerb.choices)
    actor = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    key = models.CharField(max_length=100, blank=True)  # of the command that is to be written
    expected_state = models.CharField(max_length=16, blank=True)  # that the person believed the plan to be in
    says = models.CharField(max_length=1000, blank=True)  # new reason for waiting; blank: unchanged

    objects = PendingCommandQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    @property
    def sentence(self) -> str:
        return Command(verb=self.verb, actor=self.actor, reason=self.reason).sentence
