from django.db import models

from notifications.models.channel import Channel

LONGEST_NAME = 100
CATCH_ALL, LAST = "Everything else", 1_000_000


class Route(models.Model):
    """A rule that names the channels of an event. The first one that matches decides; the last one matches all.

    An empty list matches everything. Places and rules are names, so that a removed one matches nothing.
    """

    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    position = models.PositiveIntegerField(unique=True)
    is_catch_all = models.BooleanField(default=False)  # the one that is always there, at the end
    places = models.JSONField(default=list)  # "eu-1", "eu-1/h200"
    severities = models.JSONField(default=list)
    kinds = models.JSONField(default=list)  # keys of rules, or "plan"
    workload_classes = models.JSONField(default=list)
    channels = models.ManyToManyField(Channel, related_name="routes")
    changed_by = models.CharField(max_length=150, blank=True)
    changed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["is_catch_all"], condition=models.Q(is_catch_all=True), name="one_catch_all"
            )
        ]
        ordering = ["position"]

    def __str__(self) -> str:
        return self.name

    @property
    def its_channels(self) -> list[Channel]:
        """Returns those that are switched on. No query if they are prefetched."""
        return [channel for channel in self.channels.all() if channel.is_on]

    @classmethod
    def catch_all(cls) -> "Route":
        """Returns the route that matches everything. It is always there."""
        given = {"name": CATCH_ALL, "position": LAST}
        return cls.objects.get_or_create(is_catch_all=True, defaults=given)[0]

    @classmethod
    def in_order(cls) -> "models.QuerySet[Route]":
        cls.catch_all()
        return cls.objects.order_by("position")
