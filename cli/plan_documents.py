"""Plans as documents: what a file would change of a draft, and its application."""

import json
import sys
from pathlib import Path
from typing import Any

import typer

from cli.failures import ExitCode, Failure
from cli.rest_types import Applied
from cli.server import Server
from cli.tables import Format, plain, show_document

MOST_BYTES = 65_536  # the server's limit
ABSENT = "–"


def read_document(path: str) -> bytes:
    """Returns the file; `-` is standard input.

    :raises Failure: when it cannot be read, or is too large
    """
    try:
        content = sys.stdin.buffer.read(MOST_BYTES + 1) if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise Failure(f"Cannot read {path}: {error.strerror}.", ExitCode.USAGE) from error
    if len(content) > MOST_BYTES:
        raise Failure(f"{path} is larger than {MOST_BYTES // 1024} KiB.", ExitCode.USAGE)
    return content


def show_differences(server: Server, content: bytes, *, form: Format) -> None:
    """Prints what an application would change. Changes nothing."""
    shown: Applied = server.post_document("plan-documents", content, dry_run="true")
    if form is not Format.TABLE:
        show_document(shown, form)
        return
    typer.echo("\n".join(_lines(shown)))


def apply_document(server: Server, content: bytes, *, is_confirmed: bool, form: Format) -> None:
    """Creates or edits the draft after its differences were shown and confirmed, unless it has changed since.

    :raises Failure: when nobody confirms, or the server refuses
    """
    shown: Applied = server.post_document("plan-documents", content, dry_run="true")
    typer.echo("\n".join(_lines(shown)), err=True)
    if shown["outcome"] != "unchanged":
        _confirm(is_confirmed=is_confirmed)
    applied: Applied = server.post_document("plan-documents", content, if_match=shown["mark"])
    if form is not Format.TABLE:
        show_document(applied, form)
        return
    typer.echo(f"Plan {applied['plan']}, revision {applied['revision']}: {applied['outcome']}.")


def _confirm(*, is_confirmed: bool) -> None:
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise Failure("Nothing was changed. To confirm these differences, add --yes.", ExitCode.USAGE)
    typer.confirm("Apply?", abort=True, err=True)


def _lines(shown: Applied) -> list[str]:
    title = plain(shown["title"])
    if shown["outcome"] == "drafted":
        return [f"New draft: {title}"]
    if not shown["differences"]:
        return [f"Plan {shown['plan']}, {title}: no differences"]
    lines = [f"Plan {shown['plan']}, {title}, revision {shown['revision']}:"]
    for item in shown["differences"]:
        lines += [f"  {item['field']}", f"  - {_value(item['drafted'])}", f"  + {_value(item['document'])}"]
    return lines


def _value(value: Any) -> str:
    return ABSENT if value is None else plain(value if isinstance(value, str) else json.dumps(value))
