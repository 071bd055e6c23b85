from django.db import models
from django.db.models import Q

from health.models.finding import Finding
from people.rights import Permission, scope_of


class FindingActQuerySet(models.QuerySet["FindingAct"]):
    def visible_to(self, user) -> "FindingActQuerySet":
        """Those on findings that a person sees; where the finding is gone, for who sees everything."""
        seen = scope_of(user, Permission.SEE)
        return self if seen.everywhere else self.filter(finding__in=Finding.objects.seen_within(seen))


class FindingAct(models.Model):
    """What a person did to a finding, when and why. Of its rule it is kept although the finding goes."""

    finding = models.ForeignKey(Finding, models.SET_NULL, null=True, related_name="acts")
    rule = models.CharField(max_length=63)
    verb = models.CharField(max_length=16)  # of `health.inbox.verbs`
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    reason = models.CharField(max_length=1000, blank=True)
    to = models.CharField(max_length=150, blank=True)  # whom it was assigned to
    said = models.CharField(max_length=500, blank=True)  # the finding, as it was then
    key = models.CharField(max_length=100, blank=True)  # the actor's own: see `edges.idempotency`

    objects = FindingActQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["finding", "by", "key"], condition=~Q(key=""), name="one_act_per_key")
        ]
        indexes = [models.Index(fields=["rule", "verb"])]
        ordering = ["-at", "-pk"]
