from __future__ import annotations

from typing import Any

from django.db import models

from fleet.models import Pool


class PoolGates(models.Model):
    """The gates of new stages on the nodes of a pool, besides or in place of the usual ones."""

    pool = models.OneToOneField(Pool, models.CASCADE, related_name="gates")
    options: Any = models.JSONField(default=dict)  # by gate, in the form that stages store
    previous: Any = models.JSONField(null=True)  # before the last change, for its undo; null: there was none
    by = models.CharField(max_length=150)
    at = models.DateTimeField()

    class Meta:
        ordering = ["pool_id"]

    def __str__(self) -> str:
        return f"gates of {self.pool_id}"
