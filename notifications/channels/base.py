"""The interface of a channel: how one kind of receiver is sent, updated and resolved. Pure."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

from wording.instants import to_the_minute
from wording.receivers import words_of


class DeliveryAct(StrEnum):
    """The effect of a delivery on the conversation about a subject."""

    OPEN = "open"
    UPDATE = "update"
    RESOLVE = "resolve"
    DIGEST = "digest"  # opens one conversation for many subjects
    TEST = "test"


TIMES = ("at", "since", "second_at")  # of a message
LISTS = ("details", "steps", "mentions")  # of a message


@dataclass(frozen=True)
class Notification:
    """The text for a receiver, the same in every channel."""

    key: str  # stable over the life of the subject, the same in every channel
    kind: str  # of `fleet.event_kinds`
    title: str  # problem and object, in one line
    severity: str  # critical, warning or note
    at: datetime  # of the event
    since: datetime  # of the subject
    cluster: str = ""
    subject: str = ""
    summary: str = ""
    impact: str = ""  # whom it hurts; blank: nothing is known
    happens_next: str = ""  # without anybody's help; blank: it is over
    second: str = ""  # the channel that gets it without an answer; blank: none
    second_at: datetime | None = None  # when the second channel gets it
    zone: str = ""  # IANA time zone for times in messages, beside UTC; blank: UTC alone
    details: Sequence[str] = ()  # values and probable causes
    steps: Sequence[str] = ()  # the next ones
    link: str = ""  # blank: no address of Quarterdeck is configured
    happened: str = ""  # latest change, such as "Acknowledged by ada."; blank: it opened
    is_acknowledged: bool = False
    mentions: Sequence[Mapping[str, str]] = ()  # people with "name" and their handles in "slack" and "teams"
    labels: Mapping[str, str] = field(default_factory=dict)  # labels by which a receiver groups and routes

    @property
    def paragraphs(self) -> list[str]:
        """Returns the text after the title, for receivers that show plain text."""
        listed = [f"{number}. {step}" for number, step in enumerate(self.steps, 1)]
        since = f"Since {self._in_zone(self.since)}"
        where = f"{since}, cluster {self.cluster}." if self.cluster else f"{since}."
        state = " ".join(part for part in (where, self.impact, self.next) if part)
        node = f"Node: {self.labels['node']}" if self.labels.get("node") else ""
        parts = (self.happened, self.summary, state, *self.details, *listed, self.link, node)
        return [part for part in parts if part]

    @property
    def next(self) -> str:
        """Returns what happens next without a person, and when."""
        return " ".join(part for part in (self.happens_next, self._second) if part)

    @property
    def _second(self) -> str:
        return f"Without an answer, {self.second} gets it at {self._in_zone(self.second_at)}." if self.second_at else ""

    def _in_zone(self, at: datetime) -> str:
        """Returns an instant in UTC and in the zone: "2026-11-30 08:00 UTC (09:00 Europe/Berlin)"."""
        if not self.zone:
            return to_the_minute(at)
        local = at.astimezone(ZoneInfo(self.zone))
        is_same_day = local.date() == at.astimezone(UTC).date()
        return f"{to_the_minute(at)} ({local:{'%H:%M' if is_same_day else '%Y-%m-%d %H:%M'}} {self.zone})"

    def written(self) -> dict[str, Any]:
        """Returns the message as it is stored."""
        row = {name: getattr(self, name) for name in self.__dataclass_fields__}
        lists = {name: list(getattr(self, name)) for name in LISTS}
        times = {name: at.isoformat() for name in TIMES if (at := getattr(self, name))}
        return row | lists | times

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "Notification":
        """Returns a stored message. Another version may have written it, with more fields or fewer."""
        known = {name: value for name, value in row.items() if name in cls.__dataclass_fields__}
        times = {name: datetime.fromisoformat(row[name]) for name in TIMES if row.get(name)}
        lists = {name: tuple(row.get(name, ())) for name in LISTS}
        return cls(**known | times | lists)


@dataclass(frozen=True)
class ChannelSettings:
    """The settings of one channel, with its secret, which exists here for one round only."""

    name: str
    address: str = ""
    secret: str = field(default="", repr=False)
    recipients: Sequence[str] = ()
    ref: str = ""  # the receiver's key of the first message of the conversation; blank: unknown


@dataclass(frozen=True)
class ChannelRequest:
    """One HTTP request. `url` may contain a secret, and is never stored or shown."""

    url: str = field(repr=False)
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Acceptance(StrEnum):
    ACCEPTED = "accepted"
    RETRY = "retry"  # the same later
    REFUSED = "refused"  # the same would be refused again


@dataclass(frozen=True)
class SendOutcome:
    verdict: Acceptance
    status: int = 0  # of HTTP or SMTP; 0: there was no answer
    sentence: str = ""  # the receiver's own words, or why there are none
    retry_after_s: float | None = None  # as the receiver asks; None: it does not say
    ref: str = ""  # the receiver's own key


PAGER_RETRIES = tuple(timedelta(seconds=s) for s in (5, 30, 120, 300, 600))
RETRIES = tuple(timedelta(seconds=s) for s in (5, 300, 1800, 7200, 18_000, 36_000))  # Standard Webhooks 1.0
GIVE_UP_AFTER = timedelta(hours=24)
MOST_RETRY_AFTER_S = 3600.0


class HttpChannel(ABC):
    """A kind of receiver that speaks HTTP with JSON."""

    key: ClassVar[str]
    title: ClassVar[str]
    asks: ClassVar[str] = ""  # label of the secret in the form; blank: no secret
    wants_address: ClassVar[str] = ""  # label of the address in the form; blank: the secret is the address
    default_address: ClassVar[str] = ""
    wants_recipients: ClassVar[str] = ""  # label of the recipients in the form; blank: none
    edits: ClassVar[bool] = False  # a change edits the first message, which `ref` names
    is_pager: ClassVar[bool] = False  # wakes people: it is retried sooner
    has_storms: ClassVar[bool] = True  # people read it: many events at once become one message
    repeats_changes: ClassVar[bool] = False  # a change is another message that people are notified of
    heartbeat_min: ClassVar[int] = 0  # the suggested minutes between two heartbeats; 0: it takes none
    heartbeat_hint: ClassVar[str] = ""  # hint about heartbeats in the form
    exports_audit: ClassVar[bool] = False  # decisions may be sent to it, too
    retried: ClassVar[frozenset[int]] = frozenset({408, 425, 429})

    @abstractmethod
    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest | None:
        """Returns the request; None for an act that the receiver cannot use, which is then skipped."""

    def heartbeat(
        self, target: ChannelSettings, *, instance: str, every: timedelta, now: datetime
    ) -> ChannelRequest | None:
        """Returns the heartbeat request, which notifies nobody; None: the kind has none."""
        return None

    def outcome(self, status: int, headers: Mapping[str, str], body: str) -> SendOutcome:
        words = words_of(body)
        if 200 <= status < 300:
            return SendOutcome(Acceptance.ACCEPTED, status, words, ref=self.ref_in(body))
        if status in self.retried or status >= 500:
            return SendOutcome(Acceptance.RETRY, status, words, retry_after_s=retry_after(headers))
        return SendOutcome(Acceptance.REFUSED, status, words)

    def ref_in(self, body: str) -> str:
        return ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Returns the seconds of a Retry-After header; None for a missing one, or one that names a date."""
    text = headers.get("retry-after", "")
    return min(float(text), MOST_RETRY_AFTER_S) if text.isascii() and text.isdigit() else None


def read_object(body: str) -> Mapping[str, Any]:
    """Returns the JSON object of an answer; empty if it is none."""
    try:
        answer = json.loads(body)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def as_json(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


JSON = {"Content-Type": "application/json"}
