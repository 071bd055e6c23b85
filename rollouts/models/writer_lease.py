from __future__ import annotations

from django.db import models

from fleet.models import Cluster


class WriterLease(models.Model):
    """That this Quarterdeck drives a cluster, and how often it has written there.

    The number goes up here before it goes up in the cluster's Lease. A Lease that is ahead of us means that this
    database is an old copy.
    """

    cluster = models.OneToOneField(Cluster, models.CASCADE, related_name="writer_lease")
    instance = models.CharField(max_length=64)  # made once per database
    epoch = models.PositiveBigIntegerField(default=0)
