from datetime import datetime

from django.db import models
from django.db.models import Q

from fleet.models.domain_event import LONGEST_KEY


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def open(self) -> "ConversationQuerySet":
        return self.filter(ended_at=None)


class Conversation(models.Model):
    """The messages of a channel about one subject: opened once, updated, and ended once."""

    channel = models.ForeignKey("notifications.Channel", models.CASCADE, related_name="conversations")
    key = models.CharField(max_length=LONGEST_KEY)  # of its events, or of a digest
    digest_key = models.CharField(max_length=LONGEST_KEY, blank=True)  # the digest that named it; blank: none
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    refreshed_at = models.DateTimeField(null=True)  # by a channel whose receiver forgets
    message = models.JSONField(default=dict)  # the last one

    objects = ConversationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "key"], condition=Q(ended_at=None), name="one_open_conversation_per_key"
            )
        ]
        indexes = [
            models.Index(fields=["key"], name="open_conversations", condition=Q(ended_at=None)),
            models.Index(fields=["digest_key"], name="open_in_digests", condition=Q(ended_at=None)),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.key} in {self.channel}"

    def end(self, *, now: datetime) -> bool:
        """Ends it; returns False if it has ended already."""
        return bool(Conversation.objects.open().filter(pk=self.pk).update(ended_at=now))
