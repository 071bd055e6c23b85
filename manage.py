#!/usr/bin/env python
import os
import sys

from django.core.management import execute_from_command_line
from django.db import DatabaseError


def refuse_undecodable_arguments(words: list[str]) -> None:
    """Refuses arguments that are not UTF-8; they would cause a traceback in the middle of a command."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            said = word.encode(errors="backslashreplace").decode()
            sys.exit(f"Nothing was done: “{said}” is not UTF-8. Write it in a terminal that speaks UTF-8.")


def execute(words: list[str]) -> None:
    """Runs the command. A database error gets a sentence; any other error a traceback."""
    try:
        execute_from_command_line(words)
    except DatabaseError:
        from config.health import migrations_trouble  # its models are there by now

        if words[1:2] == ["migrate"] or not (trouble := migrations_trouble()):
            raise
        sys.exit(trouble)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
    refuse_undecodable_arguments(sys.argv)
    execute(sys.argv)
