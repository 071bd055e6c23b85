"""The entry of `bin/quarterdeck`: runs a command, and turns a failure into one sentence and an exit code."""

import sys

import typer

from cli.commands import app
from cli.failures import Failure


def main() -> None:
    try:
        app(prog_name="quarterdeck")
    except Failure as failure:
        typer.echo(f"Error: {failure}", err=True)
        sys.exit(failure.code)


if __name__ == "__main__":
    main()
