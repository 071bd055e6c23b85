"""Idempotency keys: what a command means that carries the key of an earlier one. Pure.

An answer of "done" holds only while its effect holds (Z37). A key belongs to one person, one verb, one body, and to the
state that its command led to. Another person's equal key is another key: rows are looked up by person and key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from edges.digests import digest
from wording.instants import to_the_second

AGAIN = "To do it now, press its button on the page once more, or send a new Idempotency-Key."


class Repeat(StrEnum):
    NEW = "new"  # no command carried this key
    DONE = "done"  # the same command, and its effect holds
    UNDONE = "undone"  # the same command, and its effect holds no more
    ANOTHER = "another"  # the key named another verb or body


@dataclass(frozen=True)
class IdempotencyKey:
    """One person's name for one command."""

    key: str  # blank: the caller named none
    person: str
    verb: str
    body: str  # its digest; blank: of a row from before digests were kept

    @classmethod
    def of(cls, key: str, *, person: str, verb: str, body: Mapping[str, Any]) -> IdempotencyKey:
        return cls(key, person, verb, digest(body))


@dataclass(frozen=True)
class CarriedOut:
    """The earlier command with a key, as rows have it now."""

    key: IdempotencyKey
    at: datetime
    holds: bool  # its effect is so now
    now_is: Callable[[], str]  # a sentence about what is so now


def repeat_of(asked: IdempotencyKey, earlier: CarriedOut | None) -> Repeat:
    if earlier is None or not asked.key or (asked.key, asked.person) != (earlier.key.key, earlier.key.person):
        return Repeat.NEW
    if asked.verb != earlier.key.verb or earlier.key.body not in {"", asked.body}:
        return Repeat.ANOTHER
    return Repeat.DONE if earlier.holds else Repeat.UNDONE


def is_done(asked: IdempotencyKey, earlier: CarriedOut | None, *, refusal: Callable[[str], Exception]) -> bool:
    """Whether this very command was carried out and its effect holds. False: the key is new.

    :raises refusal: when the key named another command, or one whose effect was undone; it is made of the sentence
    """
    match repeat_of(asked, earlier):
        case Repeat.ANOTHER if earlier:
            named = f"{earlier.key.verb} at {to_the_second(earlier.at)}"
            raise refusal(
                f"Not done: this form, or this Idempotency-Key, named another command already: {named}. {AGAIN}"
            )
        case Repeat.UNDONE if earlier:
            done = f"{earlier.key.verb} was done at {to_the_second(earlier.at)}, and is no longer in effect."
            raise refusal(f"Not done again: {done} {earlier.now_is()} {AGAIN}")
        case Repeat.DONE:
            return True
    return False
