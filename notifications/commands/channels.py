"""Adds, changes, tests and removes channels. Each is recorded as a decision."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import SplitResult, urlsplit
from zoneinfo import available_timezones

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email, validate_slug
from django.db import IntegrityError, transaction
from django.db.models import Q

from edges import concurrent_edits
from edges.digests import digest
from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from health.sources.addresses import check_ca
from health.sources.posts import check_receiver
from health.sources.secrets import FILE_PLACE, NoSecret
from health.sources.streams import check_receiver_at
from health.telemetry.prometheus.answers import Unusable
from notifications.channels import CHANNELS
from notifications.channels.base import DeliveryAct
from notifications.channels.mail import Mail
from notifications.channels.slack_bot import SlackBot
from notifications.channels.syslog import Syslog, port_of
from notifications.commands.refusals import BadChannel, NotificationRefusal
from notifications.models import AuditFormat, Channel, Delivery, DeliveryState, Route
from notifications.models.channel import wake_channels
from notifications.rounds.transport import CHANNEL_SECRETS
from notifications.texts import message_of_test
from people.models import AuditEntry
from wording.lists import names

GIVEN = ("kind", "address", "secret_from", "ca_file", "recipients", "zone", "heartbeat_min", "audit_format",
         "is_on")  # fmt: skip
# Settings that entries of earlier versions do not have, as their channels had them
ADDED_LATER = {"zone": "", "heartbeat_min": 0, "audit_format": AuditFormat.NONE.value}
LABELS = {"secret_from": "secret", "ca_file": "CA", "is_on": "switched on", "heartbeat_min": "heartbeats",
          "audit_format": "decisions", "zone": "time zone"}  # fmt: skip
RECIPIENTS_AT_MOST = 20
SLACK_CHANNEL = re.compile(r"[CDG][A-Z0-9]{8,20}")
MOST_HEARTBEAT_MIN = 24 * 60
LOCAL_SECRETS = frozenset({"webhook", "syslog"})  # never sent: it signs messages, or the handshake of TLS
OPTIONAL_SECRETS = frozenset({"alertmanager", "syslog"})
ADD = "channel.add"
SUBJECT = "channel:"  # of audit entries, before the channel's key


def add_channel(name: str, *, actor: str, now: datetime, key: str = "", **given: Any) -> Channel:
    """Adds a channel. A repeated `key` with the same settings returns the channel that the first call added.

    :raises BadChannel: naming the field
    :raises NotificationRefusal: when another channel has the name, the key belongs to other settings, or the channel
        was changed or removed since
    """
    try:
        validate_slug(name)
    except ValidationError as error:
        raise BadChannel("name", "Letters, digits, - and _ only.") from error
    fields = validated_channel(given)
    channel = Channel(
        name=name, added_by=actor, added_at=now, changed_at=now, state_since=now, lease_until=now, **fields,
        **_heartbeats(fields, now=now), **_audit(fields),
    )  # fmt: skip
    if before := _channel_of_key(channel, key):
        return before
    try:
        with transaction.atomic():
            channel.save(force_insert=True)
            wake_channels([channel.pk], now=now)
            _record(channel, ADD, actor=actor, now=now, evidence={**_settings(channel), "key": key})
    except IntegrityError as taken:
        if first := _channel_of_key(channel, key):  # sent twice at once
            return first
        raise NotificationRefusal(f"There is a channel {name} already.") from taken
    return channel


def change_channel(channel: Channel, *, actor: str, now: datetime, was: str = "", **given: Any) -> Channel:
    """Changes a channel. What waits for it is sent with the new settings, at once.

    `was` is the `mark_of` the channel when it was shown; empty means whatever is saved.

    :raises BadChannel: naming the field
    :raises LostRace: when it changed since it was shown
    """
    known = channel.address if given.get("kind", channel.kind) == channel.kind else ""
    fields = validated_channel({name: getattr(channel, name) for name in GIVEN} | given, known_address=known)
    with transaction.atomic():
        row = Channel.objects.select_for_update().get(pk=channel.pk)
        concurrent_edits.refuse_unseen(row, GIVEN, was=was, to=fields, labels=LABELS)
        before = _settings(row)
        # Whoever sends with the old settings records nothing: the epoch is over.
        Channel.objects.filter(pk=row.pk).update(
            **fields, **_heartbeats(fields, now=now), **_audit(fields), changed_at=now, epoch=row.epoch + 1,
            lease_until=now, paused_until=None,
        )  # fmt: skip
        row.refresh_from_db()
        _record(row, "channel.change", actor=actor, now=now, evidence={"before": before, "after": _settings(row)})
        wake_channels([row.pk], now=now)
    return row


def remove_channel(channel: Channel, *, actor: str, now: datetime, was: str = "") -> None:
    """Removes a channel that no route names. What waits for it is given up, and stays in the log.

    :raises NotificationRefusal: when a route names it
    :raises LostRace: when it changed since the mark `was`
    """
    with transaction.atomic():
        row = Channel.objects.select_for_update().filter(pk=channel.pk).first()
        if row is None:
            return
        concurrent_edits.refuse_unseen(row, GIVEN, was=was, to={}, labels=LABELS)
        routes = Route.objects.filter(Q(channels=row) | Q(escalates_to=row)).distinct()
        if used := list(routes.values_list("name", flat=True)):
            raise NotificationRefusal(f"{row.name} is a channel of {names(used)}: take it out there first.")
        gone = {"state": DeliveryState.DEAD, "ended_at": now, "sentence": f"The channel was removed by {actor}."}
        waiting = Delivery.objects.waiting().filter(channel=row).update(**gone)
        _record(row, "channel.remove", actor=actor, now=now, evidence={**_settings(row), "given_up": waiting})
        row.delete()


def send_test(channel: Channel, *, actor: str, now: datetime) -> Delivery:
    """Queues a test message. A worker sends it once, with the network and the secrets of all others.

    :raises NotificationRefusal: when the channel is switched off
    """
    if not channel.is_on:
        raise NotificationRefusal(f"{channel.name} is switched off: switch it on first.")
    with transaction.atomic():
        written = message_of_test(channel.name, by=actor, now=now).written()
        delivery = Delivery.objects.create(
            channel=channel, channel_name=channel.name, key=f"test/{channel.pk}", act=DeliveryAct.TEST, message=written,
            digest=digest(written), created_at=now, next_try_at=now, asked_by=actor,
        )  # fmt: skip
        Channel.objects.filter(pk=channel.pk).update(paused_until=None)
        _record(channel, "channel.test", actor=actor, now=now, evidence={"delivery": delivery.pk})
        wake_channels([channel.pk], now=now)
    return delivery


def resend(delivery: Delivery, *, actor: str, now: datetime) -> Delivery:
    """Sends a message once more, as a new delivery of the same conversation.

    :raises NotificationRefusal: when it waits, or its channel is gone or switched off
    """
    channel = delivery.channel
    if delivery.state == DeliveryState.WAITING:
        raise NotificationRefusal("The message is being sent. It can be sent again after a failure.")
    if channel is None:
        raise NotificationRefusal(f"Its channel {delivery.channel_name} was removed: no message can be sent there.")
    if not channel.is_on:
        raise NotificationRefusal(f"{channel.name} is switched off: switch it on first.")
    with transaction.atomic():
        again = Delivery.objects.create(
            channel=channel, channel_name=channel.name, route_name=delivery.route_name, event=delivery.event,
            key=delivery.key, act=delivery.act, message=delivery.message, digest=delivery.digest, created_at=now,
            next_try_at=now, asked_by=actor,
        )  # fmt: skip
        _record(channel, "delivery.resend", actor=actor, now=now, evidence={"delivery": delivery.pk, "as": again.pk})
        wake_channels([channel.pk], now=now)
    return again


def _heartbeats(fields: dict[str, Any], *, now: datetime) -> dict[str, Any]:
    """Returns when the first heartbeat is sent: at once, so that a person sees whether it is accepted."""
    if fields.get("heartbeat_min"):
        return {"heartbeat_next_at": now}
    return {"heartbeat_next_at": None, "heartbeat_at": None, "heartbeat_sentence": ""}


def _audit(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns what makes an export begin at once. It continues after the last decision that was accepted."""
    return {"audit_next_at": None, **({} if fields["audit_format"] != AuditFormat.NONE else {"audit_sentence": ""})}


def mark_of(channel: Channel | None) -> str:
    """Returns a digest of all settings of the channel, also of a missing one."""
    return concurrent_edits.mark_of(channel, GIVEN)


def validated_channel(given: dict[str, Any], *, known_address: str = "") -> dict[str, Any]:
    """Returns the validated settings.

    :raises BadChannel: naming the field
    """
    kind = CHANNELS.get(given.get("kind", ""))
    if kind is None:
        raise BadChannel("kind", f"One of: {', '.join(CHANNELS)}.")
    fields = {name: given[name] for name in GIVEN if name in given}
    fields["address"] = _address(
        kind.wants_address,
        fields.get("address", "").strip(),
        default=kind.default_address,
        known={known_address, kind.default_address} - {""},
        is_stream=isinstance(kind, Syslog),
    )
    recipients = fields.get("recipients", ())
    fields["recipients"] = _recipients(recipients) if isinstance(kind, Mail) else []
    if isinstance(kind, SlackBot):
        fields["recipients"] = _slack_channel(recipients)
    fields["zone"] = fields.get("zone") or ""
    if fields["zone"] and fields["zone"] not in available_timezones():
        raise BadChannel("zone", "A time zone, as Europe/Berlin.")
    minutes = fields["heartbeat_min"] = fields.get("heartbeat_min") or 0
    if minutes and not kind.heartbeat_min:
        raise BadChannel("heartbeat_min", f"{kind.title} takes no heartbeats.")
    if minutes > MOST_HEARTBEAT_MIN:
        raise BadChannel("heartbeat_min", f"At most {MOST_HEARTBEAT_MIN} minutes.")
    wanted = fields["audit_format"] = fields.get("audit_format") or AuditFormat.NONE
    if wanted != AuditFormat.NONE and not (kind.exports_audit and wanted in AuditFormat.values):
        raise BadChannel("audit_format", f"{kind.title} takes no decisions in this format.")
    secret = fields["secret_from"] = _secret_place(kind, fields.get("secret_from", "").strip())
    is_sent = secret and kind.key not in LOCAL_SECRETS
    if is_sent and fields["address"].startswith("http://") and not settings.NOTIFICATION_NETWORKS:
        raise BadChannel("address", "A secret is not sent over http://, where anybody on the way reads it.")
    if fields.get("ca_file"):
        _check("ca_file", check_ca, fields["ca_file"])
    return fields


def places_of(kind: Any) -> str:
    """Returns the places that the secret of a kind may have. OpenSSL reads a client certificate from a file alone."""
    return FILE_PLACE if isinstance(kind, Syslog) else CHANNEL_SECRETS.places


def _secret_place(kind: Any, place: str) -> str:
    """Returns the place of the secret. Blank: the kind has none, or needs none."""
    if not kind.asks:
        return ""
    if not place and kind.key not in OPTIONAL_SECRETS:
        raise BadChannel("secret_from", f"Say where its secret is: {places_of(kind)}.")
    if place:
        _check("secret_from", CHANNEL_SECRETS.check, place)
    if place and isinstance(kind, Syslog) and not place.startswith("file:"):
        raise BadChannel("secret_from", f"A client certificate is a file. Write {FILE_PLACE}.")
    return place


def _address(wanted: str, given: str, *, default: str, known: Collection[str], is_stream: bool) -> str:
    """Returns the address. Known ones are not looked up, so that a channel can be changed without a name server."""
    if not wanted:
        return ""
    address = given or default
    if address in known:
        return address
    parts = urlsplit(address)
    if is_stream:
        return _stream_address(parts)
    base = f"{parts.scheme}://{parts.netloc}{parts.path}"
    _check("address", check_receiver, base)
    if parts.fragment:
        raise BadChannel("address", "An address of a receiver has no #.")
    return address


def _stream_address(parts: SplitResult) -> str:
    """Returns the address of a receiver that speaks TLS alone."""
    try:
        host, port = parts.hostname or "", port_of(parts)
    except ValueError as error:
        raise BadChannel("address", f"The address cannot be parsed: {error}") from error
    if parts.scheme != "tls" or not host or parts.path.strip("/") or parts.query or parts.fragment or parts.username:
        raise BadChannel("address", "Write it as tls://HOST:PORT.")
    _check("address", check_receiver_at, host, port)
    return f"tls://{parts.netloc}"


def _recipients(given: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(address.strip() for address in given if address.strip()))
    if not found:
        raise BadChannel("recipients", "Give at least one mail address.")
    if len(found) > RECIPIENTS_AT_MOST:
        raise BadChannel("recipients", f"At most {RECIPIENTS_AT_MOST} addresses: use a mailing list for more.")
    for address in found:
        try:
            validate_email(address)
        except ValidationError as error:
            raise BadChannel("recipients", f"{address[:100]} is no mail address.") from error
    return found


def _slack_channel(given: Sequence[str]) -> list[str]:
    names = [name.strip() for name in given if name.strip()]
    if len(names) != 1 or not SLACK_CHANNEL.fullmatch(names[0]):
        raise BadChannel("recipients", "The id of one Slack channel, as C0123456789: not its name.")
    return names


def _check(field: str, check: Any, *args: Any, **named: Any) -> None:
    try:
        check(*args, **named)
    except (Unusable, NoSecret) as error:
        raise BadChannel(field, str(error)) from error


def _settings(channel: Channel) -> dict[str, Any]:
    return {"name": channel.name, **{name: getattr(channel, name) for name in GIVEN}}


def _channel_of_key(asked: Channel, key: str) -> Channel | None:
    """Returns the channel that this caller's key has added already; None without a key or a channel.

    :raises NotificationRefusal: when the key belongs to other settings, or the channel was changed or removed since
    """
    entries = AuditEntry.objects.filter(actor=asked.added_by, verb=ADD, evidence__key=key).order_by("-id")
    first = entries.first() if key else None
    if first is None:
        return None
    added = {name: value for name, value in (ADDED_LATER | first.evidence).items() if name != "key"}
    channel = Channel.objects.filter(pk=int(first.subject.removeprefix(SUBJECT))).first()
    holds = channel is not None and _settings(channel) == added

    def key_of(body: dict[str, Any]) -> IdempotencyKey:
        return IdempotencyKey.of(key, person=asked.added_by, verb=ADD, body=body)

    earlier = EarlierCommand(key_of(added), first.at, holds, lambda: _difference(channel, added))
    return channel if is_done(key_of(_settings(asked)), earlier, refusal=NotificationRefusal) else None


def _difference(channel: Channel | None, added: dict[str, Any]) -> str:
    """Returns how the channel differs now from what was added."""
    if channel is None:
        return f"The channel {added['name']} was removed."
    current = {name: value for name, value in _settings(channel).items() if added.get(name) != value}
    return f"The channel {channel.name} is different now: {concurrent_edits.as_text(current, LABELS)}."


def _record(channel: Channel, verb: str, *, actor: str, now: datetime, evidence: Any) -> None:
    AuditEntry.record(f"{SUBJECT}{channel.pk}", verb=verb, actor=actor, evidence=evidence, now=now)
