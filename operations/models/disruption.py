from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q

from fleet.models import Cluster
from fleet.models.visible import Visible
from operations.failure_domains import DomainKind


class DisruptionQuerySet(Visible["Disruption"]):
    def in_force(self) -> DisruptionQuerySet:
        return self.filter(ended_at__isnull=True)

    def give_back(self, *, now: datetime) -> int:
        return self.in_force().update(ended_at=now)


class Disruption(models.Model):
    """A ledger entry: a node that is or will be unavailable and takes a place in each of its domains.

    It is written in the transaction of the intent. It keeps the node's domains of that time, since labels of GPU
    feature discovery are absent while the driver changes.
    """

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="disruptions")
    taken_by = models.CharField(max_length=63)  # the mark of its owner: plan-7, operation-3
    binds_rollbacks = models.BooleanField(default=False)  # else a rollback does not wait for the node
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    was_in_service = models.BooleanField(db_default=True, default=True)  # a new node takes no place of a budget
    domains = models.JSONField(default=list)  # [["zone", "eu-1a"], ["pool", "7"]]
    taken_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)  # when its node was healthy or held again, or its plan ended

    objects = DisruptionQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node_uid"], condition=Q(ended_at__isnull=True), name="one_disruption_at_a_time_per_node"
            ),
            models.CheckConstraint(condition=~Q(taken_by=""), name="a_disruption_has_an_owner"),
        ]
        indexes = [
            models.Index(fields=["cluster", "taken_by"], condition=Q(ended_at=None), name="disruptions_in_force")
        ]
        ordering = ["cluster_id", "taken_at", "pk"]

    @property
    def words(self) -> str:
        """Returns the node with the reason, for lists."""
        return f"{self.node_name} ({self.taken_by})"

    @property
    def not_free(self) -> str:
        """Returns why nobody else may take the node."""
        return f"{self.taken_by} already changes {self.node_name}. A node has only one change at a time."


class DomainBudget(models.Model):
    """The number of nodes of each zone, rack or NVLink domain that may be unavailable.

    Without a row there is no limit.
    """

    BUDGETED_KINDS = (DomainKind.ZONE, DomainKind.RACK, DomainKind.NVLINK)

    cluster = models.ForeignKey(Cluster, models.CASCADE, related_name="domain_budgets")
    kind = models.CharField(max_length=16, choices=[(kind.value, kind.value) for kind in BUDGETED_KINDS])
    max_unavailable = models.PositiveIntegerField()  # nodes, including broken ones
    label = models.CharField(max_length=317, blank=True)  # of racks: the label that names a node's; else blank
    reason = models.CharField(max_length=1000, blank=True)
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind"], name="one_budget_per_kind_of_domain"),
            models.CheckConstraint(condition=Q(max_unavailable__gte=1), name="a_domain_may_have_some_out"),
        ]
        ordering = ["cluster_id", "kind"]

    @classmethod
    def rack_label(cls, cluster_id: int) -> str:
        """Returns the node label that names racks in the budgets; blank if racks have none."""
        racks = cls.objects.filter(cluster=cluster_id, kind=DomainKind.RACK)
        return racks.values_list("label", flat=True).first() or ""
