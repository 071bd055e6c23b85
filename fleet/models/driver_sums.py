from django.db import models

from fleet.models.sums import Sums, one_row_per_likeness

ALIKE = ("cluster", "driver_daemon_set", "driver_owner")


class DriverSums(Sums):
    """By whose driver they have: what driver objects are counted by."""

    alike = ALIKE
    is_of_gpu_nodes = True

    driver_daemon_set = models.CharField(max_length=64, blank=True)
    driver_owner = models.CharField(max_length=253, blank=True)

    class Meta:
        constraints = [one_row_per_likeness(ALIKE, "driver_sums")]
