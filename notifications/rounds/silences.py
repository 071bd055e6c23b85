"""The silences of an Alertmanager that suppress alerts of ours."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from django.conf import settings

from health.sources.posts import read_from
from health.sources.secrets import NoSecret
from health.telemetry.prometheus.answers import Unusable
from notifications.channels.alertmanager import Alertmanager
from notifications.channels.base import shorten
from notifications.models import Channel
from notifications.rounds.transport import target_of


class _AlertStatus(msgspec.Struct):
    silencedBy: list[str] = []  # noqa: N815 (the API's name)


class _Alert(msgspec.Struct):
    labels: dict[str, str]
    status: _AlertStatus


class _SilenceStatus(msgspec.Struct):
    state: str  # expired, active or pending


class Silence(msgspec.Struct):
    id: str
    createdBy: str  # noqa: N815
    comment: str
    endsAt: datetime  # noqa: N815
    status: _SilenceStatus
    matchers: list[dict[str, Any]] = []

    @property
    def is_expired(self) -> bool:
        return self.status.state == "expired"


ALERTS, SILENCES = msgspec.json.Decoder(list[_Alert]), msgspec.json.Decoder(list[Silence])
MOST_SILENCES = 500  # stored silences of one channel
LONGEST_COMMENT = 300


def silences_of(channel: Channel, kind: Alertmanager) -> list[dict[str, str]]:
    """Returns the silences of our alerts. One request, and one more with any.

    :raises Unusable: when the receiver cannot be read
    """
    try:
        target = target_of(channel)
        url, headers = kind.silenced_alerts(target, instance=settings.INSTANCE)
        by_key = silenced_ids(read_from(url, headers, secret=target.secret, ca_file=channel.ca_file))
        if not any(by_key.values()):
            return []
        url, headers = kind.silences(target)
        return written_silences(read_from(url, headers, secret=target.secret, ca_file=channel.ca_file), by_key)
    except NoSecret as error:
        raise Unusable(str(error)) from error
    except msgspec.MsgspecError as error:
        raise Unusable(f"The answer is not that of an Alertmanager: {error}") from error


def silenced_ids(body: bytes) -> dict[str, list[str]]:
    """Returns the silences of each alert by our key.

    :raises msgspec.MsgspecError: when it is another answer
    """
    return {each.labels.get("quarterdeck_key", ""): each.status.silencedBy for each in ALERTS.decode(body)}


def written_silences(body: bytes, by_key: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """Returns what is stored of the silences of our alerts. Raises as `silenced_ids` does."""
    known = {each.id: each for each in SILENCES.decode(body)}
    found = [(key, known[each]) for key, ids in sorted(by_key.items()) for each in ids if each in known]
    return [
        {
            "key": key,
            "by": shorten(silence.createdBy, LONGEST_COMMENT),
            "comment": shorten(silence.comment, LONGEST_COMMENT),
            "until": silence.endsAt.isoformat(),
        }
        for key, silence in found[:MOST_SILENCES]
    ]
