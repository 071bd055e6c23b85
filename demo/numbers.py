"""Numbers on a command line: one that makes no sense is refused there, in words, and not by what breaks of it later."""

import argparse
from collections.abc import Callable


def whole(least: int, most: int) -> Callable[[str], int]:
    """Return what reads a whole number, as argparse wants it."""

    def read(word: str) -> int:
        try:
            number = int(word)
        except ValueError:
            number = least - 1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{word!r} is no whole number from {least} to {most}")
        return number

    return read


def factor(least: float, most: float) -> Callable[[str], float]:
    """Return what reads a number with or without a fraction; infinity and NaN are none."""

    def read(word: str) -> float:
        try:
            number = float(word)
        except ValueError:
            number = float("nan")
        if not least <= number <= most:  # nothing can be said of NaN, this neither
            raise argparse.ArgumentTypeError(f"{word!r} is no number from {least:g} to {most:g}")
        return number

    return read
