from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Max

KEPT = timedelta(days=90)
MOST = 50  # stored evaluations of one node or stage: the last one is empty, and ends the older ones


class GateLook(models.Model):
    """The evidence of a changed node, or of its stage, as its gates saw it. A row is written when that changes."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="looks", db_index=False)
    node_uid = models.CharField(max_length=63, blank=True)  # blank: the stage itself
    at = models.DateTimeField()
    number = models.PositiveIntegerField()  # of this node in this stage: 1, 2, 3 …
    seen = models.JSONField()  # empty: nothing is recorded from here on
    digest = models.CharField(max_length=64, default="", db_default="")  # digest of the compared part of `seen`

    class Meta:
        indexes = [models.Index(fields=["stage", "node_uid", "-at"]), models.Index(fields=["at"])]
        ordering = ["stage_id", "node_uid", "at", "pk"]

    def __str__(self) -> str:
        return f"look {self.number} at {self.node_uid or 'the stage'}"

    @classmethod
    def newest(cls, stage_ids: Collection[int]) -> "dict[tuple[int, str], GateLook]":
        """Returns the newest of each node of these stages, and of the stages themselves, without `seen`. One query."""
        keys = cls.objects.filter(stage__in=stage_ids).order_by().values("stage", "node_uid").annotate(newest=Max("pk"))
        rows = cls.objects.filter(pk__in=keys.values("newest")).order_by().defer("seen")
        return {(row.stage_id, row.node_uid): row for row in rows}

    @classmethod
    def expired(cls, *, now: datetime) -> "models.QuerySet[GateLook]":
        return cls.objects.filter(at__lt=now - KEPT)
