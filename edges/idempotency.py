"""Idempotency keys: what a repeated key means. Pure.

A command counts as done only while its effect lasts (Z37). A key belongs to one person, one verb and one body. Rows
are looked up by person and key, so two people may use the same key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from edges.digests import digest
from wording.instants import to_the_second

OWN_KEYS = "chosen-"  # begin of the keys of operations that Quarterdeck starts in a person's name
AGAIN = "To repeat it, press the button again or send a new Idempotency-Key."


class Repeat(StrEnum):
    NEW = "new"  # no earlier command has this key
    DONE = "done"  # the same command; its effect lasts
    UNDONE = "undone"  # the same command; its effect was undone
    ANOTHER = "another"  # the key belongs to another verb or body


def why_no_key(key: str) -> str:
    """Returns why a person may not use the key. Blank: the person may."""
    return f"A key may not begin with {OWN_KEYS}: Quarterdeck uses such keys." if key.startswith(OWN_KEYS) else ""


@dataclass(frozen=True)
class IdempotencyKey:
    """A person's name for one command."""

    key: str  # blank: the caller sent none
    person: str
    verb: str
    body: str  # digest of the body; blank in rows from before digests were stored

    @classmethod
    def of(cls, key: str, *, person: str, verb: str, body: Mapping[str, Any]) -> IdempotencyKey:
        return cls(key, person, verb, digest(body))


@dataclass(frozen=True)
class EarlierCommand:
    """An earlier command with the same idempotency key, and whether its effect lasts."""

    key: IdempotencyKey
    at: datetime
    holds: bool  # the effect lasts
    now_is: Callable[[], str]  # returns a sentence about the current state


def repeat_of(requested: IdempotencyKey, earlier: EarlierCommand | None) -> Repeat:
    if earlier is None or not requested.key:
        return Repeat.NEW
    if (requested.key, requested.person) != (earlier.key.key, earlier.key.person):
        return Repeat.NEW
    if requested.verb != earlier.key.verb or earlier.key.body not in {"", requested.body}:
        return Repeat.ANOTHER
    return Repeat.DONE if earlier.holds else Repeat.UNDONE


def is_done(requested: IdempotencyKey, earlier: EarlierCommand | None, *, refusal: Callable[[str], Exception]) -> bool:
    """Returns True if this command was carried out and its effect lasts, False if the key is new.

    :raises refusal: when the key belongs to another command, or the effect was undone
    """
    match repeat_of(requested, earlier):
        case Repeat.ANOTHER if earlier:
            named = f"{earlier.key.verb} at {to_the_second(earlier.at)}"
            raise refusal(f"Refused: this form or Idempotency-Key was already used for {named}. {AGAIN}")
        case Repeat.UNDONE if earlier:
            done = f"{earlier.key.verb} from {to_the_second(earlier.at)} is no longer in effect."
            raise refusal(f"Refused: {done} {earlier.now_is()} {AGAIN}")
        case Repeat.DONE:
            return True
    return False
