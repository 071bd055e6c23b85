"""Channels: one row per receiver, with the state of its deliveries. It contains no secret."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Coalesce, Greatest, Least

from notifications.channels import CHANNELS
from notifications.channels.base import HttpChannel
from notifications.channels.mail import Mail
from notifications.channels.other import Other
from notifications.channels.syslog import Syslog
from operations.models.leased import Leased

OWN = "@"  # the names of channels of one person's e-mail begin so; no other name contains it
LEASE = timedelta(seconds=60)  # longer than one request may take; a killed worker costs this much at most


class ChannelState(models.TextChoices):
    UNUSED = "unused"  # nothing was sent yet
    WORKING = "working"  # the last message was accepted
    FAILING = "failing"  # the last message failed: `sentence` gives the reason


class AuditFormat(models.TextChoices):
    NONE = "none", "none"
    JSON = "json", "JSON, as the REST API has them"
    OCSF = "ocsf", "OCSF 1.5.0"


class ChannelQuerySet(models.QuerySet["Channel"]):
    def due(self, *, now: datetime) -> ChannelQuerySet:
        return self.filter(is_on=True, next_look_at__lte=now)

    def failing(self) -> ChannelQuerySet:
        """Returns the channels whose last message, heartbeat or decision was not accepted."""
        return self.filter(
            Q(state=ChannelState.FAILING) | ~Q(heartbeat_sentence="") | ~Q(audit_sentence=""), is_on=True
        )

    def shared(self) -> ChannelQuerySet:
        """Returns the channels that routes may name: not those of one person's e-mail."""
        return self.exclude(name__startswith=OWN)


class Channel(Leased):
    """A receiver of notifications. One worker at a time sends to it, in the order of the events."""

    lease_for = LEASE
    queue_name = "default"

    name = models.SlugField(max_length=63, unique=True)
    kind = models.CharField(max_length=16, choices=[(kind.key, kind.title) for kind in CHANNELS.values()])
    address = models.CharField(max_length=300, blank=True)  # blank: of its kind, or its secret is the address
    secret_from = models.CharField(max_length=300, blank=True)  # "env:NAME" or "file:NAME", never the secret
    ca_file = models.CharField(max_length=300, blank=True)
    recipients = models.JSONField(default=list)  # mail addresses
    zone = models.CharField(max_length=64, blank=True, db_default="")  # for times in messages, beside UTC
    is_on = models.BooleanField(default=True)
    added_by = models.CharField(max_length=150)
    added_at = models.DateTimeField()
    changed_at = models.DateTimeField()  # by a person

    state = models.CharField(max_length=16, choices=ChannelState.choices, default=ChannelState.UNUSED)
    state_since = models.DateTimeField()
    sentence = models.CharField(max_length=600, blank=True)  # why it fails, in the receiver's own words
    delivered_at = models.DateTimeField(null=True)  # null: never
    paused_until = models.DateTimeField(null=True)  # the receiver asked for it, or did not answer

    # The end of its client certificate; null: none, renewed by a program, or unknown
    certificate_until = models.DateTimeField(null=True)

    heartbeat_min = models.PositiveSmallIntegerField(
        default=0, db_default=0
    )  # minutes between two heartbeats; 0: none are sent
    heartbeat_at = models.DateTimeField(null=True)  # the last one that was accepted; null: none
    heartbeat_next_at = models.DateTimeField(null=True)  # null: none is sent
    heartbeat_sentence = models.CharField(
        max_length=600, blank=True, db_default=""
    )  # why the last one was not accepted

    audit_format = models.CharField(
        max_length=8, choices=AuditFormat.choices, default=AuditFormat.NONE, db_default=AuditFormat.NONE.value
    )
    audit_after = models.BigIntegerField(default=0, db_default=0)  # key of the last decision that was accepted
    audit_at = models.DateTimeField(null=True)  # the last time that decisions were accepted; null: never
    audit_next_at = models.DateTimeField(null=True)  # null: as soon as decisions are exported
    audit_sentence = models.CharField(max_length=600, blank=True, db_default="")  # why the last were not accepted

    # Of an Alertmanager: its silences of our alerts, as {"key", "by", "comment", "until"}; null: never read
    silences = models.JSONField(null=True)
    silences_at = models.DateTimeField(null=True)  # when they were last read
    silences_sentence = models.CharField(max_length=600, blank=True, db_default="")  # why the last reading failed
    mutes_sentence = models.CharField(max_length=600, blank=True, db_default="")  # why mutes are no silences there

    objects = ChannelQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def its_kind(self) -> HttpChannel | Mail | Syslog | Other:
        return CHANNELS[self.kind]

    @property
    def exports_audit(self) -> bool:
        return self.audit_format != AuditFormat.NONE

    @property
    def is_failing(self) -> bool:
        is_refused = bool(self.heartbeat_sentence or self.audit_sentence)
        return self.is_on and (self.state == ChannelState.FAILING or is_refused)

    def its_row(self) -> ChannelQuerySet:
        return Channel.objects.filter(pk=self.pk, is_on=True)

    def take_lease(self, *, owner: str, now: datetime) -> bool:
        """Takes the next round. A wake during the round moves the time back, which `end_lease` detects."""
        self.fallback_look_at = now + self.lease_for
        return super().take_lease(owner=owner, now=now)

    def end_lease(self, *, now: datetime, next_look_at: datetime | None) -> bool:
        """Ends the lease; returns whether a wake came during the round."""
        ends = {"lease_until": now}
        if self.mine().filter(next_look_at=self.fallback_look_at).update(**ends, next_look_at=next_look_at):
            return False
        return self.mine().update(**ends) == 1

    fallback_look_at: datetime  # set by `take_lease`


def wake_channels(keys: Collection[int], *, now: datetime) -> None:
    """Makes channels due now, or once their pause ends. The row decides; the message is only a hint."""
    soon = Greatest(Value(now), Coalesce("paused_until", Value(now)))
    for key in sorted(keys):
        Channel.objects.filter(pk=key).update(next_look_at=Least(Coalesce("next_look_at", soon), soon))
        Channel.queue_round(key)
