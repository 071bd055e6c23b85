"""What can be wrong with a move from one state to another, in every app. Pure."""

from enum import StrEnum


class IllegalMove(Exception):
    """The move is not in the table: a bug, or a request that came too late."""

    def __init__(self, what: str, was: StrEnum, to: StrEnum) -> None:
        super().__init__(f"{what} that is {was} cannot become {to}.")


class LostRace(Exception):
    """Somebody else moved it first. Read it again before deciding anything."""
