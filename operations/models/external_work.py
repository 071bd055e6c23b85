from django.db import models

from fleet.models import Cluster


class ExternalWork(models.Model):
    """The work of remediators and machine controllers on the nodes of a cluster, as their objects had it last."""

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="external_work")
    by_node = models.JSONField(default=dict)  # by node name: who, what, object
    not_looked = models.JSONField(default=dict)  # by kind: why its objects were not read
    absent = models.JSONField(default=list)  # kinds that the cluster does not serve
    asked_at = models.DateTimeField(null=True)  # when the last look was queued
    looked_at = models.DateTimeField(null=True)  # of the last look that was answered; null: none yet

    def __str__(self) -> str:
        return f"work of others in {self.cluster}"
