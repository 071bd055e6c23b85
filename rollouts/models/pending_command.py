from __future__ import annotations

from django.db import models

from rollouts.models.command import Command, Verb


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
    says = models.CharField(max_length=1000, blank=True)  # what the plan waits for from then on; blank: as before

    objects = PendingCommandQuerySet.as_manager()

    class Meta:
        ordering = ["pk"]

    @property
    def sentence(self) -> str:
        """Returns the same sentence as the recorded command."""
        return Command(verb=self.verb, actor=self.actor, reason=self.reason).sentence
