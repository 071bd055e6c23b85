"""The silences that mutes have in an Alertmanager: created, changed and ended with them.

A conversation says which silence its alert has. The Alertmanager's own list is read before anything is written there,
so that a silence that was created and not recorded is found again, and a silence of somebody else is never touched.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from edges.transition_errors import LostRace
from health.inbox.queries import mutes_of_each
from health.models import Finding, Mute
from health.sources.posts import read_from
from health.sources.secrets import NoSecret
from health.telemetry.prometheus.answers import Unusable
from notifications.channels.alertmanager import Alertmanager
from notifications.channels.base import Acceptance, shorten
from notifications.models import Channel, Conversation
from notifications.rounds.silences import LONGEST_COMMENT, MOST_SILENCES, SILENCES, Silence
from notifications.rounds.transport import end_silence, put_silence, target_of

MOST = 5000  # alerts of a channel that are compared
REFUSALS = 3  # after which a round asks no more
SAME = timedelta(seconds=1)  # an Alertmanager rounds times to milliseconds


@dataclass(frozen=True)
class _AlertSilence:
    """The silence that an alert has by its row, and the one that it should have."""

    conversation: Conversation
    mute: Mute | None  # the longest one; None: the alert should have no silence

    @property
    def key(self) -> str:
        return f"quarterdeck/{settings.INSTANCE}/{self.conversation.key}"

    def is_due(self, silenced: Collection[str], *, is_capped: bool) -> bool:
        """Returns whether the row differs, or the Alertmanager does not report the silence of the row.

        :param is_capped: whether it reports more silences than are stored, so that this one may be one of them
        """
        until = self.conversation.silence_until
        if self.mute is None:
            return until is not None
        return until != self.mute.until or (self.key not in silenced and not is_capped)


def sync_silences(channel: Channel, kind: Alertmanager, *, now: datetime, until: float) -> bool:
    """Brings the silences of the channel up to date; returns whether some are left. Nothing is asked if none is due.

    :raises LostRace: when another worker has the channel
    """
    silenced = {each["key"] for each in channel.silences or ()}
    is_capped = len(channel.silences or ()) >= MOST_SILENCES
    rows = _silences_of(channel, now=now)
    due = [each for each in rows if each.is_due(silenced, is_capped=is_capped)]
    wanted = {each.key for each in rows if each.mute}
    refusals: list[str] = []
    done = 0
    try:
        known = _known(channel, kind) if due else {}
        for each in due:
            if time.monotonic() > until or len(refusals) == REFUSALS:
                break
            done += 1
            channel.keep_lease(now=now)
            try:
                is_of_another = each.mute is None and each.key in wanted  # an earlier conversation about the same
                its = () if is_of_another else known.get(each.key, ())
                columns = _silenced(channel, kind, each, its, now=now)
            except Unusable as error:
                refusals.append(str(error))
                continue
            if all(getattr(each.conversation, name) == value for name, value in columns.items()):
                continue
            with transaction.atomic():
                channel.keep_lease(now=now)
                Conversation.objects.filter(pk=each.conversation.pk).update(**columns)
    except (NoSecret, Unusable) as error:
        refusals.append(str(error))
    except msgspec.MsgspecError as error:
        refusals.append(f"The answer is not that of an Alertmanager: {error}")
    _note(channel, next(iter(refusals), ""))
    return not refusals and done < len(due)


def _silences_of(channel: Channel, *, now: datetime) -> list[_AlertSilence]:
    """Returns the alerts that have or should have a silence. Four queries at most."""
    its = Conversation.objects.filter(channel=channel)
    wanted = Q(pk__in=its.muted().order_by().values("pk")) | Q(silence_until__isnull=False)
    columns = ("channel", "key", "ended_at", "silence_id", "silence_until")
    rows = list(its.filter(wanted).only(*columns).order_by("pk")[:MOST])
    keys = {row.key: int(row.key.partition("/")[2]) for row in rows if row.ended_at is None}
    findings = Finding.objects.muted().select_related("node").in_bulk(keys.values()) if keys else {}
    mutes = mutes_of_each(findings.values(), now=now) if findings else {}
    longest = {pk: max(its, key=lambda mute: mute.until, default=None) for pk, its in mutes.items()}
    return [_AlertSilence(row, longest.get(keys.get(row.key, 0))) for row in rows]


def _known(channel: Channel, kind: Alertmanager) -> Mapping[str, Sequence[Silence]]:
    """Returns the silences that we created, by key. One request.

    :raises Unusable: when they cannot be read
    """
    target = target_of(channel)
    url, headers = kind.silences(target)
    found: dict[str, list[Silence]] = {}
    for each in SILENCES.decode(read_from(url, headers, secret=target.secret, ca_file=channel.ca_file)):
        key = str(each.matchers[0].get("value", "")) if len(each.matchers) == 1 else ""
        if each.createdBy == _creator() and {"isEqual": True} | each.matchers[0] == kind.matcher(key):
            found.setdefault(key, []).append(each)
    return found


def _silenced(
    channel: Channel, kind: Alertmanager, each: _AlertSilence, its: Sequence[Silence], *, now: datetime
) -> dict[str, object]:
    """Ends, keeps, creates or replaces one silence, and returns the columns of its row.

    :raises Unusable: when it could not be
    """
    conversation, mute = each.conversation, each.mute
    active = [silence for silence in its if not silence.is_expired]
    if mute is None:
        for silence in active:
            end_silence(channel, kind, silence.id)
        return {"silence_id": "", "silence_until": None}
    for silence in active:
        if abs(silence.endsAt - mute.until) <= SAME:
            return {"silence_id": silence.id, "silence_until": mute.until}
    is_ended_there = any(silence.id == conversation.silence_id for silence in its) and not active
    if is_ended_there and conversation.silence_until == mute.until:
        return {"silence_until": mute.until}  # by a person, who wants the alert
    comment = shorten(f"Muted by {mute.by}: {mute.reason}", LONGEST_COMMENT)
    ref = active[0].id if active else ""
    outcome = put_silence(channel, kind, each.key, ref=ref, by=_creator(), comment=comment, until=mute.until, now=now)
    if outcome.verdict is not Acceptance.ACCEPTED or not outcome.ref:
        raise Unusable(outcome.sentence or f"It answers {outcome.status}.")
    return {"silence_id": outcome.ref, "silence_until": mute.until}


def _creator() -> str:
    """Returns the name under which this installation creates silences. No other silence is changed or ended."""
    return f"Quarterdeck {settings.INSTANCE}"


def _note(channel: Channel, sentence: str) -> None:
    """Records why mutes are no silences there; blank: they are.

    :raises LostRace: when another worker has the channel
    """
    if channel.mutes_sentence != sentence[:600] and not channel.mine().update(mutes_sentence=sentence[:600]):
        raise LostRace(f"Another worker has {channel.name}.")
