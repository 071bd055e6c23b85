"""Sends decisions to a channel that exports them: in order, at least once, from a stored cursor."""

import json
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from edges.transition_errors import LostRace
from notifications.channels.base import Acceptance, SendOutcome
from notifications.channels.syslog import LARGEST, Syslog
from notifications.models import AuditFormat, Channel
from notifications.rounds.transport import AuditRecord, send_records
from people.audit_trail import line_of, settled_rows
from people.models import AuditEntry
from people.ocsf import event_of

AT_ONCE = 50  # decisions of one request
LARGEST_BATCH = 256 << 10  # characters of one request; a larger decision is sent alone
LOOK_AGAIN = timedelta(minutes=1)
TRY_AGAIN = timedelta(seconds=30)


def export_audit(channel: Channel, *, clock: Callable[[], datetime], until: float) -> None:
    """Sends settled decisions until none is left, the time is up, or the receiver refuses.

    :raises LostRace: when another worker has the channel
    """
    channel.refresh_from_db(fields=["audit_format", "audit_after", "audit_next_at"])
    if not channel.exports_audit or (channel.audit_next_at or clock()) > clock():
        return
    while batch := _next_batch(channel, now=clock()):
        with transaction.atomic():
            channel.keep_lease(now=clock())
        outcome = send_records(channel, batch, now=clock())
        _record(channel, outcome, last=batch[-1].key, now=clock())
        if outcome.verdict is not Acceptance.ACCEPTED or time.monotonic() > until:
            return
    _change(channel, audit_next_at=clock() + LOOK_AGAIN)


def _next_batch(channel: Channel, *, now: datetime) -> list[AuditRecord]:
    batch: list[AuditRecord] = []
    rows = settled_rows(AuditEntry.objects.all(), after=channel.audit_after, most=AT_ONCE, now=now)
    size = 0
    for row in rows:
        text = _text_of(channel, row)
        size += len(text)
        if batch and size > LARGEST_BATCH:
            break
        batch.append(AuditRecord(row["id"], row["at"], text))
    return batch


def _text_of(channel: Channel, row: Mapping[str, Any]) -> str:
    """Returns a decision as JSON, without its evidence where syslog would cut it."""
    text = _json_of(channel, row)
    is_cut = isinstance(channel.its_kind, Syslog) and len(text) > LARGEST - 512  # the header is shorter
    return _json_of(channel, {**row, "evidence": {"left_out_bytes": len(text)}}) if is_cut else text


def _json_of(channel: Channel, row: Mapping[str, Any]) -> str:
    if channel.audit_format == AuditFormat.JSON:
        return line_of(row)
    return json.dumps(event_of(row, instance=settings.INSTANCE, version=settings.VERSION), separators=(",", ":"))


def _record(channel: Channel, outcome: SendOutcome, *, last: int, now: datetime) -> None:
    """Moves the cursor behind accepted decisions, or records the refusal and the receiver's retry time."""
    if outcome.verdict is Acceptance.ACCEPTED:
        _change(channel, audit_after=last, audit_at=now, audit_sentence="")
        return
    pause = timedelta(seconds=outcome.retry_after_s) if outcome.retry_after_s else TRY_AGAIN
    sentence = outcome.sentence or f"It answers {outcome.status}."
    _change(channel, audit_sentence=sentence[:600], audit_next_at=now + pause)


def _change(channel: Channel, **columns: object) -> None:
    """Writes under the lease.

    :raises LostRace: when another worker has the channel
    """
    if not channel.mine().update(**columns):
        raise LostRace(f"Another worker has {channel.name}.")
    channel.refresh_from_db(fields=list(columns))
