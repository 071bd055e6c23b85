from collections import defaultdict
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Max, Q

from rollouts.gates.base import ServiceLevel
from rollouts.gates.slo import WINDOWS_AHEAD, Slo

KEPT = timedelta(days=1)
StageGate = tuple[int, str]  # key of a stage and of its gate
FINDINGS = ("value", "samples", "newest_at", "baseline", "baseline_samples", "baseline_nodes", "trouble", "cause")


class ServiceLevelSample(models.Model):
    """A measurement of the service that a stage's gate watches. A stage keeps those of a day, and more windows."""

    stage = models.ForeignKey("rollouts.Stage", models.CASCADE, related_name="service_levels", db_index=False)
    gate = models.CharField(max_length=16, db_default=Slo.key, default=Slo.key)  # key of the gate that asks
    at = models.DateTimeField()
    nodes = models.JSONField(default=list)  # names
    value = models.FloatField(null=True)  # null: the source has none
    samples = models.FloatField(default=0)
    newest_at = models.DateTimeField(null=True)  # null: the source has no sample
    baseline = models.FloatField(null=True)
    baseline_samples = models.FloatField(default=0)
    baseline_nodes = models.PositiveIntegerField(default=0)
    trouble = models.CharField(max_length=500, blank=True)  # why nothing was measured; blank: it was
    cause = models.CharField(max_length=63, blank=True)
    is_window = models.BooleanField(db_default=False, default=False)  # no earlier window overlaps

    class Meta:
        indexes = [models.Index(fields=["stage", "-at"])]
        ordering = ["stage_id", "-at", "-pk"]

    def __str__(self) -> str:
        return f"stage {self.stage_id} at {self.at}"

    @property
    def evidence(self) -> ServiceLevel:
        return ServiceLevel(self.at, tuple(self.nodes), **{name: getattr(self, name) for name in FINDINGS})

    @classmethod
    def keep(cls, stage_id: int, level: ServiceLevel, gate: Slo) -> None:
        """Stores a measurement. Three queries."""
        rows = cls.objects.filter(stage=stage_id, gate=gate.key)
        day, windows = level.asked_at - KEPT, level.asked_at - max(KEPT, WINDOWS_AHEAD * gate.window)
        rows.filter(Q(at__lt=windows) | Q(at__lt=day, is_window=False)).delete()
        last = rows.filter(is_window=True).order_by("-at").values_list("at", flat=True).first()
        found = {name: getattr(level, name) for name in FINDINGS} | {"trouble": level.trouble[:500]}
        is_window = gate.is_window(level, last)
        cls.objects.create(
            stage_id=stage_id, gate=gate.key, at=level.asked_at, nodes=list(level.nodes), is_window=is_window, **found
        )

    @classmethod
    def windows(cls, stage_ids: Collection[int]) -> dict[StageGate, list[ServiceLevel]]:
        """Returns the measurements of each gate whose windows do not overlap, the oldest first. One query.

        They do not name their nodes, which are many.
        """
        found: dict[StageGate, list[ServiceLevel]] = defaultdict(list)
        rows = cls.objects.filter(stage__in=stage_ids, is_window=True).order_by("at")
        for stage_id, gate, at, *values in rows.values_list("stage", "gate", "at", *FINDINGS):
            found[stage_id, gate].append(ServiceLevel(at, (), **dict(zip(FINDINGS, values, strict=True))))
        return found

    def is_older_than(self, age: timedelta, *, now: datetime) -> bool:
        """Returns whether the measurement is older, or is of the future: a clock was set back."""
        return not timedelta() <= now - self.at < age

    @classmethod
    def newest(cls, stage_ids: Collection[int]) -> "dict[StageGate, ServiceLevelSample]":
        """Returns the newest of each gate. One query."""
        newest = cls.objects.filter(stage__in=stage_ids).order_by().values("stage", "gate").annotate(newest=Max("pk"))
        return {(row.stage_id, row.gate): row for row in cls.objects.filter(pk__in=newest.values("newest")).order_by()}
