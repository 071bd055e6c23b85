from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Exists, OuterRef, Q

from fleet.models import Cluster
from fleet.models.visible import Visible
from operations.lifecycle import NodeProgress
from operations.models.operation import Operation, OperationNode

LANDS_WITHIN = timedelta(minutes=2)  # a sent request is visible in the cluster by then, or was lost


class MaintenanceRequestQuerySet(Visible["MaintenanceRequest"]):
    def in_force(self) -> MaintenanceRequestQuerySet:
        """Returns the requests that may be in their cluster."""
        return self.filter(gone_at__isnull=True)

    def of_node(self, node_uid: str) -> MaintenanceRequest | None:
        return self.in_force().filter(node_uid=node_uid).select_related("operation").first()

    def cancelled(self) -> MaintenanceRequestQuerySet:
        """Returns the requests in force of nodes that were cancelled: they are taken back."""
        nodes = OperationNode.objects.filter(
            operation=OuterRef("operation"), node_uid=OuterRef("node_uid"), state=NodeProgress.CANCELLED
        )
        return self.in_force().filter(Exists(nodes))


class MaintenanceRequest(models.Model):
    """NVSentinel's MaintenanceRequest for one node. The row is the intent, written before the object.

    It ends when the object was read back as gone: NVSentinel then releases the node.
    """

    cluster = models.ForeignKey(Cluster, models.PROTECT, related_name="maintenance_requests")
    operation = models.ForeignKey(Operation, models.PROTECT, related_name="maintenance_requests")
    node_uid = models.CharField(max_length=64)
    node_name = models.CharField(max_length=253)
    state_before = models.CharField(max_length=63, blank=True)  # NVSentinel's label before; blank: none, or it changed
    intended_at = models.DateTimeField()  # from here on the object may be in the cluster
    seen_at = models.DateTimeField(null=True)  # when it was read back
    ended_by = models.ForeignKey(Operation, models.PROTECT, null=True, related_name="+")  # asked for its deletion
    gone_at = models.DateTimeField(null=True)  # when it was read as removed
    trouble = models.CharField(max_length=500, blank=True)  # why it is not deleted

    objects = MaintenanceRequestQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node_uid"], condition=Q(gone_at__isnull=True), name="one_maintenance_request_per_node"
            )
        ]
        ordering = ["cluster_id", "node_name", "pk"]

    def __str__(self) -> str:
        return self.object_name

    @property
    def object_name(self) -> str:
        return f"quarterdeck-operation-{self.operation_id}-{self.pk}"

    @property
    def owner(self) -> str:
        """Returns the value of the annotation that marks the object as the one of this row."""
        return f"operation-{self.operation_id}/{self.node_uid}"

    def note(self, **columns: object) -> None:
        MaintenanceRequest.objects.in_force().filter(pk=self.pk).update(**columns)
        for name, value in columns.items():
            setattr(self, name, value)

    def end(self, *, now: datetime) -> None:
        self.note(gone_at=now, trouble="")

    def is_gone_when_absent(self, *, now: datetime) -> bool:
        """Returns whether an object that is not there is gone: one never seen may still be on its way."""
        return self.seen_at is not None or now - self.intended_at > LANDS_WITHIN
