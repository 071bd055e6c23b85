"""The format of an evidence file, for writing and reading. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from edges.digests import digest

FORMAT = "quarterdeck-evidence/1"


class NoEvidence(ValueError):
    """The file is not an evidence file."""


@dataclass(frozen=True)
class Flaw:
    field: str  # as decisions[0].bundle
    sentence: str

    def __str__(self) -> str:
        return f"{self.field}: {self.sentence}"


def bytes_of(content: Mapping[str, Any]) -> bytes:
    """Returns the canonical bytes of the content."""
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def hashes_of_parts(content: Mapping[str, Any]) -> dict[str, str]:
    """Returns a hash per part, so that a changed part can be named."""
    hashes = {"plan": digest(content.get("plan"))}
    for name in ("decisions", "answers", "audit", "overrides", "halts"):
        rows = content.get(name)
        hashes |= {
            f"{name}[{number}]": digest(row) for number, row in enumerate(rows if isinstance(rows, list) else ())
        }
    return hashes


def parse_evidence_file(file: bytes) -> dict[str, Any]:
    try:
        content = json.loads(file, object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant)
    except NoEvidence:
        raise
    except (ValueError, RecursionError) as error:
        raise NoEvidence(f"This file is not JSON: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise NoEvidence(f"This is not an evidence file: its “format” is not {FORMAT}.")
    return content


def rows_of(content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = content.get(name)
    return [row if isinstance(row, Mapping) else {} for row in rows] if isinstance(rows, list) else []


def first_difference(file: bytes, written: bytes) -> int:
    """Returns the first different line, counted from 1; 0 if there is none."""
    if file == written:
        return 0
    pairs = zip_longest(file.split(b"\n"), written.split(b"\n"))
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), 1)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise NoEvidence("An object has the same key twice.")
    return content


def _refuse_constant(name: str) -> None:
    raise NoEvidence(f"{name} is not a number")
