"""A round of one channel: it sends what is due, oldest first, and records what became of it."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F, Min

from edges.transition_errors import LostRace
from health.telemetry.prometheus.answers import Unusable
from notifications.channels.alertmanager import REFRESH, Alertmanager
from notifications.channels.base import (
    PAGER_RETRIES,
    Acceptance,
    DeliveryAct,
    HttpChannel,
    Notification,
    SendOutcome,
)
from notifications.channels.syslog import Syslog
from notifications.models import Channel, ChannelState, Conversation, Delivery, DeliveryState
from notifications.models.conversation import ConversationQuerySet
from notifications.retries import next_try, pause_after
from notifications.rounds.audit_export import export_audit
from notifications.rounds.digests import digest_message
from notifications.rounds.own_silences import sync_silences
from notifications.rounds.silences import silences_of
from notifications.rounds.transport import certificate_end, send, send_again, send_heartbeat
from rollouts.models.traffic import DRAIN, UNDRAIN

ROUND_S = 30.0  # then the lease is given back, for a moment
AT_ONCE = 50
HEARTBEAT_AGAIN = timedelta(minutes=1)  # after one that was not accepted
REFRESHED_AT_ONCE = 500
SILENCES_EVERY = timedelta(minutes=1)
CERTIFICATE_EVERY = timedelta(days=1)  # at least, also without messages
NOT_DELIVERED = "The message before it was not delivered."
ALL_ENDED = "Everything in this digest ended before it was sent."
BEGINNINGS = (DeliveryAct.OPEN, DeliveryAct.DIGEST)  # the first messages of conversations
UNDELIVERED_AFTER = len(PAGER_RETRIES)  # attempts; then the second channel of the route is used
TRAFFIC_CALLS = (DRAIN, UNDRAIN)  # sent again as soon as a page: nodes wait for their traffic
log = structlog.get_logger(__name__)
Clock = Callable[[], datetime]


def run_channel(key: int, *, owner: str, clock: Clock) -> None:
    channel = Channel.objects.filter(pk=key, is_on=True).first()
    if channel is None or not channel.take_lease(owner=owner, now=clock()):
        return
    try:
        _send_due(channel, clock=clock, until=time.monotonic() + ROUND_S)
        _refresh(channel, now=clock())
        _read_silences(channel, now=clock())
        _note_certificate(channel)
        has_more = _silence_mutes(channel, now=clock(), until=time.monotonic() + ROUND_S)
        _send_heartbeat(channel, now=clock())
        export_audit(channel, clock=clock, until=time.monotonic() + ROUND_S)
    except LostRace as lost:
        log.info("a round of a channel ended early", channel=channel.name, reason=str(lost))
        return
    now = clock()
    if channel.end_lease(now=now, next_look_at=now if has_more else _next_look_at(channel, now=now)):
        Channel.queue_round(channel.pk)


def _send_due(channel: Channel, *, clock: Clock, until: float) -> None:
    """Sends until nothing is due, the time is up, or the channel has to rest.

    :raises LostRace: when another worker has the channel
    """
    channel.refresh_from_db(fields=["paused_until"])
    if channel.paused_until is not None and channel.paused_until > clock():
        return
    while due := list(Delivery.objects.due(now=clock()).filter(channel=channel)[:AT_ONCE]):
        for delivery in due:
            if time.monotonic() > until or not _attempt(channel, delivery, clock=clock):
                return


def _attempt(channel: Channel, delivery: Delivery, *, clock: Clock) -> bool:
    """Sends one message; returns whether the channel may go on at once.

    The attempt is recorded first. A worker that dies in between leaves a message that is sent again under the same key,
    by which receivers recognize it.

    :raises LostRace: when another worker has the channel
    """
    now, began = clock(), time.monotonic()
    with transaction.atomic():
        channel.keep_lease(now=now)
        Delivery.objects.waiting().filter(pk=delivery.pk).update(attempts=F("attempts") + 1, tried_at=now)
    delivery.attempts += 1
    if delivery.act == DeliveryAct.DIGEST:
        delivery.message = digest_message(channel, delivery, now=now).written()
        if not _named_in(delivery).open().exists() and _end_empty(channel, delivery, now=now):
            return True
    message = replace(Notification.read(delivery.message), **_second_of(delivery, now=now))
    ref = _first_ref(delivery) if channel.its_kind.edits else ""
    outcome = send(channel, message, DeliveryAct(delivery.act), delivery=delivery.name, now=now, ref=ref)
    took_ms = round(1000 * (time.monotonic() - began))
    with transaction.atomic():
        now = clock()
        channel.keep_lease(now=now)
        if outcome is None:
            _end(delivery, DeliveryState.SKIPPED, now=now)
            return True
        return _record(channel, delivery, outcome, took_ms=took_ms, now=now)


def _record(channel: Channel, delivery: Delivery, outcome: SendOutcome, *, took_ms: int, now: datetime) -> bool:
    """Records the outcome; returns whether the channel may go on at once."""
    told = {"status": outcome.status, "sentence": outcome.sentence[:600], "took_ms": took_ms}
    if outcome.verdict is Acceptance.ACCEPTED:
        _end(delivery, DeliveryState.SENT, now=now, **told, ref=outcome.ref, message=delivery.message)
        _note(channel, ChannelState.WORKING, "", now=now, delivered_at=now, paused_until=None)
        return True
    again = _again_at(channel, delivery, outcome, now=now)
    if again is None:
        _give_up(delivery, now=now, **told)
    else:
        Delivery.objects.waiting().filter(pk=delivery.pk).update(next_try_at=again, **told)
        if delivery.attempts >= UNDELIVERED_AFTER and delivery.act in BEGINNINGS:
            _subjects_of(delivery).open().exclude(escalates_at=None).undelivered(now=now)
    rests = outcome.verdict is Acceptance.RETRY
    pause = {"paused_until": now + pause_after(outcome.retry_after_s)} if rests else {}
    _note(channel, ChannelState.FAILING, outcome.sentence or f"It answers {outcome.status}.", now=now, **pause)
    return not rests


def _again_at(channel: Channel, delivery: Delivery, outcome: SendOutcome, *, now: datetime) -> datetime | None:
    """Returns when the message is sent again; None for a test, a refusal, and after the last retry."""
    if outcome.verdict is Acceptance.REFUSED or delivery.act == DeliveryAct.TEST:
        return None
    is_pager = channel.its_kind.is_pager or delivery.message["kind"] in TRAFFIC_CALLS
    at = next_try(attempts=delivery.attempts, created_at=delivery.created_at, is_pager=is_pager, now=now)
    return at and max(at, now + timedelta(seconds=outcome.retry_after_s or 0))


def _give_up(delivery: Delivery, *, now: datetime, **told: object) -> None:
    """Ends the message, and a conversation that has therefore not begun, so that the next event begins it."""
    _end(delivery, DeliveryState.DEAD, now=now, **told)
    if delivery.act in BEGINNINGS:
        begun = _subjects_of(delivery).open()
        begun.undelivered(now=now)
        begun.update(ended_at=now)
        _skip_later(delivery, NOT_DELIVERED, now=now)


def _first_ref(delivery: Delivery) -> str:
    """Returns the receiver's key of the message that began the conversation; blank if there is none."""
    begun = Delivery.objects.filter(channel=delivery.channel_id, key=delivery.key, act__in=BEGINNINGS)
    return begun.filter(state=DeliveryState.SENT).order_by("-pk").values_list("ref", flat=True).first() or ""


def _second_of(delivery: Delivery, *, now: datetime) -> dict[str, Any]:
    """Returns the second channel that the conversation goes to without an answer, and when; nothing if it does not."""
    waits = Conversation.objects.open().filter(channel=delivery.channel_id, key=delivery.key, escalates_at__gt=now)
    row = waits.values("escalates_at", "route__escalates_to__name").first()
    name = row and row["route__escalates_to__name"]
    return {"second": name, "second_at": row["escalates_at"]} if row and name else {}


def _end_empty(channel: Channel, delivery: Delivery, *, now: datetime) -> bool:
    """Ends a digest whose subjects have all ended; returns whether it is skipped: it is empty, or wakes people."""
    is_skipped = channel.its_kind.is_pager or not _named_in(delivery).exists()
    with transaction.atomic():
        channel.keep_lease(now=now)
        Conversation.objects.open().filter(channel=channel, key=delivery.key).update(ended_at=now)
        _skip_later(delivery, ALL_ENDED, now=now)
        if is_skipped:
            _end(delivery, DeliveryState.SKIPPED, now=now, sentence=ALL_ENDED, message=delivery.message)
    return is_skipped


def _named_in(digest: Delivery) -> ConversationQuerySet:
    return Conversation.objects.filter(channel=digest.channel_id, digest_key=digest.key)


def _subjects_of(delivery: Delivery) -> ConversationQuerySet:
    """Returns the conversations that this first message begins."""
    return _named_in(delivery) | Conversation.objects.filter(channel=delivery.channel_id, key=delivery.key)


def _skip_later(delivery: Delivery, sentence: str, *, now: datetime) -> None:
    """Ends what waits behind a message of the same key."""
    later = Delivery.objects.waiting().filter(channel=delivery.channel_id, key=delivery.key, pk__gt=delivery.pk)
    later.update(state=DeliveryState.SKIPPED, ended_at=now, sentence=sentence)


def _end(delivery: Delivery, state: DeliveryState, *, now: datetime, **told: object) -> None:
    Delivery.objects.waiting().filter(pk=delivery.pk).update(state=state, ended_at=now, **told)


def _note(channel: Channel, state: ChannelState, sentence: str, *, now: datetime, **columns: object) -> None:
    since = {} if channel.state == state else {"state_since": now}
    Channel.objects.filter(pk=channel.pk).update(state=state, sentence=sentence[:600], **since, **columns)
    channel.state = state


def _refresh(channel: Channel, *, now: datetime) -> None:
    """Sends open conversations again to a receiver that forgets them, in one request."""
    kind = channel.its_kind
    if not isinstance(kind, Alertmanager):
        return
    old = list(_to_refresh(channel, until=now - REFRESH)[:REFRESHED_AT_ONCE])
    if not old:
        return
    messages = [Notification.read(each.message) for each in old]
    outcome = send_again(channel, kind, messages, now=now)
    if outcome.verdict is Acceptance.ACCEPTED:
        Conversation.objects.filter(pk__in=[each.pk for each in old]).update(refreshed_at=now)
    else:
        _note(channel, ChannelState.FAILING, outcome.sentence or f"It answers {outcome.status}.", now=now)


def _read_silences(channel: Channel, *, now: datetime) -> None:
    """Stores the silences of our alerts, at most once a minute, while a conversation is open.

    :raises LostRace: when another worker has the channel
    """
    kind = channel.its_kind
    if not isinstance(kind, Alertmanager):
        return
    rests = channel.paused_until is not None and channel.paused_until > now
    if rests or (channel.silences_at is not None and now - channel.silences_at < SILENCES_EVERY):
        return
    if not channel.silences and not Conversation.objects.open().filter(channel=channel).exists():
        return
    try:
        columns: dict[str, object] = {"silences": silences_of(channel, kind), "silences_at": now}
        columns["silences_sentence"] = ""
    except Unusable as error:
        columns = {"silences_sentence": str(error)[:600]}
    if not channel.mine().update(**columns):
        raise LostRace(f"Another worker has {channel.name}.")


def _silence_mutes(channel: Channel, *, now: datetime, until: float) -> bool:
    """Brings the silences of mutes up to date; returns whether some are left for the next round.

    :raises LostRace: when another worker has the channel
    """
    kind = channel.its_kind
    rests = channel.paused_until is not None and channel.paused_until > now
    return isinstance(kind, Alertmanager) and not rests and sync_silences(channel, kind, now=now, until=until)


def _note_certificate(channel: Channel) -> None:
    """Records when the client certificate of the channel ends.

    :raises LostRace: when another worker has the channel
    """
    until = certificate_end(channel)
    if until != channel.certificate_until and not channel.mine().update(certificate_until=until):
        raise LostRace(f"Another worker has {channel.name}.")


def _to_refresh(channel: Channel, *, until: datetime):
    return Conversation.objects.open().filter(channel=channel, refreshed_at__lte=until).order_by("refreshed_at")


def _send_heartbeat(channel: Channel, *, now: datetime) -> None:
    """Sends the heartbeat that is due. One that fails is sent again a minute later.

    :raises LostRace: when another worker has the channel
    """
    channel.keep_lease(now=now)
    channel.refresh_from_db(fields=["paused_until", "heartbeat_min", "heartbeat_next_at"])
    kind, due = channel.its_kind, channel.heartbeat_next_at
    rests = channel.paused_until is not None and channel.paused_until > now
    if not isinstance(kind, HttpChannel) or due is None or due > now or rests:
        return
    outcome = send_heartbeat(channel, kind, now=now)
    every = timedelta(minutes=channel.heartbeat_min)
    if outcome is None:
        columns: dict[str, object] = {"heartbeat_next_at": None}
    elif outcome.verdict is Acceptance.ACCEPTED:
        columns = {"heartbeat_next_at": now + every, "heartbeat_at": now, "heartbeat_sentence": ""}
    else:
        sentence = outcome.sentence or f"It answers {outcome.status}."
        columns = {"heartbeat_next_at": now + min(every, HEARTBEAT_AGAIN), "heartbeat_sentence": sentence[:600]}
    if not channel.mine().update(**columns):
        raise LostRace(f"Another worker has {channel.name}.")
    channel.refresh_from_db(fields=["heartbeat_next_at"])


def _next_look_at(channel: Channel, *, now: datetime) -> datetime | None:
    """Returns when something is due next; None: nothing waits."""
    waiting = Delivery.objects.next_of_each_key().filter(channel=channel)
    times = [waiting.aggregate(at=Min("next_try_at"))["at"], channel.heartbeat_next_at]
    if channel.exports_audit:
        times.append(channel.audit_next_at or now)
    if isinstance(channel.its_kind, Syslog) and channel.secret_from:
        times.append(now + CERTIFICATE_EVERY)
    if isinstance(channel.its_kind, Alertmanager):
        oldest = Conversation.objects.open().filter(channel=channel).aggregate(at=Min("refreshed_at"))["at"]
        times.append(oldest and oldest + REFRESH)
        is_left = Conversation.objects.with_silences().filter(channel=channel).exclude(ended_at=None).exists()
        times.append(now + SILENCES_EVERY if is_left else None)
    due = min((at for at in times if at is not None), default=None)
    paused = Channel.objects.filter(pk=channel.pk).values_list("paused_until", flat=True).first()
    return due and max(due, now, paused or now)
