from datetime import datetime

from django.db import models

from notifications.models.channel import Channel
from notifications.route_match import TRAFFIC, EventProperties
from people.models import User
from people.rights import Permission, scope_of

LONGEST_HANDLE = 254


class Preference(models.Model):
    """A person's own choice: which events come by e-mail, and the handles by which chats mention them."""

    person = models.OneToOneField(User, models.CASCADE, related_name="notification_preference")
    severities = models.JSONField(default=list)  # of events that come by e-mail; empty: none come
    kinds = models.JSONField(default=list)  # keys of rules, "plan" or "traffic"; empty: each but "traffic"
    slack_id = models.CharField(max_length=LONGEST_HANDLE, blank=True)  # a member id, as U0123456789
    teams_id = models.CharField(max_length=LONGEST_HANDLE, blank=True)  # a user principal name or object id
    channel = models.OneToOneField(Channel, models.SET_NULL, null=True)  # of the e-mail; null: none was wanted yet
    changed_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"preferences of {self.person}"

    def wants(self, properties: EventProperties) -> bool:
        """Returns whether an event comes by e-mail, if the person may see it."""
        is_kind = properties.kind in self.kinds if self.kinds else properties.kind != TRAFFIC
        return properties.severity in self.severities and is_kind

    def may_see(self, cluster_id: int, pool_ids: set[int]) -> bool:
        """Returns whether the person sees a place. No query if the bindings are prefetched."""
        scope = scope_of(self.person, Permission.SEE)
        return scope.covers_cluster(cluster_id) or not scope.pool_ids.isdisjoint(pool_ids)

    @property
    def mail(self) -> str:
        return next(iter(self.channel.recipients), "") if self.channel else ""

    @property
    def zone(self) -> str:
        return self.channel.zone if self.channel else ""

    @property
    def mention(self) -> dict[str, str]:
        """Returns the handles, as a message has them."""
        return {"name": self.person.get_username(), "slack": self.slack_id, "teams": self.teams_id}

    @classmethod
    def of(cls, person: User, *, now: datetime) -> "Preference":
        """Returns the person's preferences; unsaved ones if none were saved."""
        return cls.objects.filter(person=person).select_related("channel").first() or cls(person=person, changed_at=now)
