"""Durations of options, as 90s, 30m, 8h or 7d."""

import re

import typer

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_seconds(text: str) -> int:
    """Returns the seconds of a duration.

    :raises typer.BadParameter: when the text is no duration
    """
    match = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if match is None:
        raise typer.BadParameter("Write a number and a unit: 90s, 30m, 8h or 7d.")
    return int(match[1]) * UNITS[match[2]]
