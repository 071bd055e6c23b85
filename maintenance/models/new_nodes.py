from __future__ import annotations

from collections.abc import Collection

from django.db import models
from django.db.models import Q

from edges.transition_errors import LostRace
from fleet.models import Pool
from fleet.models.visible import Visible
from maintenance.models.case import LONGEST_REASON


class NewNodeGateQuerySet(Visible["NewNodeGate"]):
    by_cluster = "pool__cluster"

    def in_pools(self, pool_ids: Collection[int]) -> Q:
        return Q(pool__in=pool_ids)


class NewNodeGate(models.Model):
    """The wishes of a pool for new nodes, before pods start there. Without a row, or without `on_since`, nothing."""

    pool = models.OneToOneField(Pool, models.CASCADE, related_name="new_node_gate")
    on_since = models.DateTimeField(null=True)  # a node that joined before is not held; null: off
    test = models.CharField(max_length=32)  # key of NODE_TESTS
    labels = models.JSONField(default=list)  # "key" or "key=value", which the node must have
    taints = models.JSONField(default=list)  # "key:Effect" or "key=value:Effect"
    needs_person = models.BooleanField(default=False)  # a person releases a node that passed
    changed_by = models.CharField(max_length=150)
    changed_at = models.DateTimeField()
    reason = models.CharField(max_length=LONGEST_REASON)
    epoch = models.PositiveBigIntegerField(default=0)  # counts the changes and the nodes that it held
    refused_at = models.DateTimeField(null=True)  # last time that a node was not held; null: never
    refused_node = models.CharField(max_length=253, db_default="", blank=True)
    refusal = models.CharField(max_length=LONGEST_REASON, db_default="", blank=True)  # why

    objects = NewNodeGateQuerySet.as_manager()

    class Meta:
        ordering = ["pool_id"]

    def __str__(self) -> str:
        return self.mark

    @property
    def mark(self) -> str:
        """Returns its name in the audit chain."""
        return f"new-node-gate-{self.pool_id}"

    def change(self, **columns: object) -> None:
        """:raises LostRace: when somebody changed it since it was read"""
        same = NewNodeGate.objects.filter(pk=self.pk, epoch=self.epoch)
        if not same.update(epoch=self.epoch + 1, **columns):
            raise LostRace("The gate of the pool was changed at the same time.")
        for name, value in {"epoch": self.epoch + 1, **columns}.items():
            setattr(self, name, value)
