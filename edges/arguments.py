"""What the arguments of commands are read by: what no row could keep is refused before anything is written. Pure."""

from argparse import ArgumentTypeError
from collections.abc import Callable

from edges.digits import whole

LONGEST_REASON = 1000


def words(most: int) -> Callable[[str], str]:
    """One line of a person's, without the blanks around it. Blank: whoever asked for it says what that means."""

    def read(text: str) -> str:
        said = text.strip()
        if len(said) > most:
            raise ArgumentTypeError(f"At most {most:,} characters; these are {len(said):,}.")
        return said

    return read


def number(least: int, most: int) -> Callable[[str], int]:
    """A whole number in ASCII digits."""

    def read(text: str) -> int:
        found = whole(text)
        if found is None or not least <= found <= most:
            raise ArgumentTypeError(f"A whole number from {least:,} to {most:,}.")
        return found

    return read


reason = words(LONGEST_REASON)
