"""Sentences that programs append to any error (`data/boilerplate.toml`). Pure."""

import re
import tomllib
from pathlib import Path

_SENTENCES = tomllib.loads((Path(__file__).parent / "data" / "boilerplate.toml").read_text())["sentences"]
_WORDS = tuple(each["words"] for each in _SENTENCES)
_PATTERN = re.compile("|".join(f"(?:{each['pattern']})" for each in _SENTENCES), re.IGNORECASE)


def without_boilerplate(line: str) -> str:
    """Returns the line without such sentences. The same line: it has none."""
    lowered = line.lower()
    return _PATTERN.sub("", line) if any(words in lowered for words in _WORDS) else line
