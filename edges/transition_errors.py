"""Errors of state transitions in every app. Pure."""

from enum import StrEnum


class IllegalMove(Exception):
    """A move that the table does not allow: a bug, or a request that came too late."""

    def __init__(self, what: str, was: StrEnum, to: StrEnum) -> None:
        super().__init__(f"{what} that is {was} cannot become {to}.")


class LostRace(Exception):
    """Somebody else moved it first. Read it again before deciding anything."""
