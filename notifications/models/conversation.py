from datetime import datetime

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Cast, Concat

from fleet.models.domain_event import LONGEST_KEY
from health.lifecycle import FindingState
from health.models import Finding

QUIET = "digest/quiet/"  # the keys of digests of quiet hours begin so


class ConversationQuerySet(models.QuerySet["Conversation"]):
    def open(self) -> "ConversationQuerySet":
        return self.filter(ended_at=None)

    def with_silences(self) -> "ConversationQuerySet":
        """Returns those for which an Alertmanager has a silence of ours, also ended ones."""
        return self.filter(silence_until__isnull=False)

    def muted(self) -> "ConversationQuerySet":
        """Returns open ones about muted findings."""
        muted = Finding.objects.filter(state=FindingState.MUTED).order_by()
        keys = muted.annotate(key=Concat(Value("finding/"), Cast("pk", models.CharField()))).values("key")
        return self.open().filter(key__in=keys)

    def to_escalate(self, *, now: datetime) -> "ConversationQuerySet":
        return self.filter(escalates_at__lte=now).order_by("pk")

    def undelivered(self, *, now: datetime) -> None:
        """Makes the second channels of their routes due at once, unless somebody has acknowledged the subject."""
        rows = self.exclude(route__escalates_to=None).exclude(message__is_acknowledged=True)
        Conversation.objects.filter(pk__in=rows.values("pk")).update(escalates_at=now)


class Conversation(models.Model):
    """The messages of a channel about one subject: opened once, updated, and ended once."""

    channel = models.ForeignKey("notifications.Channel", models.CASCADE, related_name="conversations")
    key = models.CharField(max_length=LONGEST_KEY)  # of its events, or of a digest
    digest_key = models.CharField(max_length=LONGEST_KEY, blank=True)  # the digest that named it; blank: none
    opened_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    refreshed_at = models.DateTimeField(null=True)  # by a channel whose receiver forgets
    route = models.ForeignKey("notifications.Route", models.SET_NULL, null=True)  # null: a digest, or a second channel
    escalates_at = models.DateTimeField(null=True)  # the second channel is used then; null: never
    message = models.JSONField(default=dict)  # the last one
    silence_id = models.CharField(max_length=64, blank=True, db_default="")  # of its mute, in the Alertmanager
    silence_until = models.DateTimeField(null=True)  # end of our silence; null: no silence of ours

    objects = ConversationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["channel", "key"], condition=Q(ended_at=None), name="one_open_conversation_per_key"
            )
        ]
        indexes = [
            models.Index(fields=["key"], name="open_conversations", condition=Q(ended_at=None)),
            models.Index(fields=["escalates_at"], name="to_escalate", condition=Q(escalates_at__isnull=False)),
            models.Index(fields=["digest_key"], name="open_in_digests", condition=Q(ended_at=None)),
        ]
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"{self.key} in {self.channel}"

    def end(self, *, now: datetime) -> bool:
        """Ends it; returns False if it has ended already."""
        return bool(Conversation.objects.open().filter(pk=self.pk).update(ended_at=now, escalates_at=None))
