#!/usr/bin/env python
import os
import sys

from django.core.management import execute_from_command_line


def refuse_what_is_no_text(words: list[str]) -> None:
    """What a terminal sends that speaks no UTF-8 is in no row, and would be a traceback in the middle of a command."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            said = word.encode(errors="backslashreplace").decode()
            sys.exit(f"Nothing was done: “{said}” is not UTF-8. Write it in a terminal that speaks UTF-8.")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.dev")
    refuse_what_is_no_text(sys.argv)
    execute_from_command_line(sys.argv)
