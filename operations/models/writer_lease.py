from __future__ import annotations

from django.db import models

from fleet.models import Cluster


class WriterLease(models.Model):
    """Our right to write to a cluster, with a counter of writes.

    The counter rises here before it rises in the cluster's Lease. A Lease ahead of us means that this database is an
    old copy.
    """

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="writer_lease")
    instance = models.CharField(max_length=64)  # made once per database
    epoch = models.PositiveBigIntegerField(default=0)
    evictions_until = models.DateTimeField(null=True)  # evictions so far are paid for until then; null: none yet
