from django.db import models
from django.db.models import Q


class RuleShadowQuerySet(models.QuerySet["RuleShadow"]):
    def in_force(self) -> "RuleShadowQuerySet":
        return self.filter(ended_at=None)

    def rules(self) -> frozenset[str]:
        """Returns the keys of the rules in shadow mode, with one query."""
        return frozenset(self.in_force().values_list("rule", flat=True))


class RuleShadow(models.Model):
    """A rule in shadow mode: it runs everywhere and is listed, but notifies nobody."""

    rule = models.CharField(max_length=63)
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000)
    ended_at = models.DateTimeField(null=True)  # null: it still is
    ended_by = models.CharField(max_length=150, blank=True)
    ended_reason = models.CharField(max_length=1000, blank=True)

    objects = RuleShadowQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rule"], condition=Q(ended_at__isnull=True), name="one_shadow_per_rule")
        ]
        ordering = ["-pk"]

    def __str__(self) -> str:
        return f"{self.rule} in shadow mode"
