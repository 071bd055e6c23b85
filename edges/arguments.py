"""Readers of command arguments. They refuse a value that no row can store. Pure."""

from argparse import ArgumentTypeError
from collections.abc import Callable

from edges.digits import whole_number

LONGEST_REASON = 1000


def words(most: int) -> Callable[[str], str]:
    """Returns a reader of one line of text, stripped. The caller decides what an empty line means."""

    def read(text: str) -> str:
        line = text.strip()
        if len(line) > most:
            raise ArgumentTypeError(f"At most {most:,} characters; this text has {len(line):,}.")
        return line

    return read


def number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number_read = whole_number(text)
        if number_read is None or not least <= number_read <= most:
            raise ArgumentTypeError(f"A whole number from {least:,} to {most:,}.")
        return number_read

    return read


reason = words(LONGEST_REASON)
