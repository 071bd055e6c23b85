from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

from fleet.models.node import members_of
from fleet.models.visible import Visible
from health.rules import CONFIRMED_AFTER


class Severity(models.TextChoices):
    CRITICAL = "critical"
    WARNING = "warning"
    NOTE = "note"


class FindingQuerySet(Visible["Finding"]):
    """A finding is seen with its node; one about a cluster or about Quarterdeck itself, with its cluster."""

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(node__in=members_of(pool_ids))

    def open(self) -> "FindingQuerySet":
        return self.filter(opened_at__isnull=False, resolved_at__isnull=True)

    def confirming(self) -> "FindingQuerySet":
        """What a rule suspects, and has not been right about for long enough yet."""
        return self.filter(opened_at__isnull=True, resolved_at__isnull=True)


class Finding(models.Model):
    """Something wrong with a node, a cluster or our sight of it: opened, updated and resolved with evidence."""

    cluster = models.ForeignKey("fleet.Cluster", models.CASCADE, related_name="findings")
    node = models.ForeignKey("fleet.Node", models.SET_NULL, null=True, related_name="findings")
    subject = models.CharField(max_length=300)  # "node gpu-001", "GPU operator", "quarterdeck": outlives its node
    rule = models.CharField(max_length=63)  # the name of a file in `health.rules`
    severity = models.CharField(max_length=16, choices=Severity.choices)
    sentence = models.CharField(max_length=500)
    action = models.CharField(max_length=500)  # what a person should do about it
    evidence = models.JSONField(default=dict)
    since = models.DateTimeField()  # when it was first seen
    opened_at = models.DateTimeField(null=True)  # null: not for as long as its rule asks for, so that nobody is told
    updated_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)

    objects = FindingQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "rule", "subject"],
                condition=Q(resolved_at__isnull=True),
                name="one_finding_at_a_time_per_subject",
            )
        ]
        indexes = [models.Index(fields=["cluster", "-opened_at"])]
        ordering = ["-opened_at", "-pk"]

    def __str__(self) -> str:
        return self.sentence

    @property
    def confirmed_at(self) -> datetime:
        """When it opens, if it is still so by then."""
        return self.since + CONFIRMED_AFTER.get(self.rule, timedelta(0))

    @property
    def plan(self) -> int | None:
        """The plan that it is about. None: it is about none."""
        return self.evidence.get("plan") if self.rule.startswith("plan-") else None
