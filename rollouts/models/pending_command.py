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
        """Halts and pauses. A stop or a freeze restrains by a row of its own."""
        return self.filter(verb__in=(PendingVerb.HALT, PendingVerb.PAUSE))


class PendingCommand(models.Model):
    """What a person told a plan that the plan's own rows do not say yet.

    A halt and a pause are in force from the commit of this row. Its insert waits for no lock: it names the plan without
    a constraint, and has no unique index but that of its primary key. Once the plan's rows say the same it is deleted.
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
        """As the command says it, once it is written."""
        return Command(verb=self.verb, actor=self.actor, reason=self.reason).sentence
