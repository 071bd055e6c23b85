"""Lines of the kernel and names of parts that detectors report in node conditions, from `data/kernel_lines.toml`."""

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

from gpu.entry_files import entry_of, make_entries, read_file

LONGEST = 1000  # characters of a condition that are read
LONGEST_TEXT = 150


@dataclass(frozen=True, kw_only=True)
class KernelLine:
    """A family of lines with its meaning. The first family that matches wins."""

    key: str
    patterns: tuple[str, ...]
    cause: str
    step: str
    severity: str = ""  # critical, warning; blank: that of its reporter
    example: str
    source: str
    date: date

    def __post_init__(self) -> None:
        if self.severity not in ("", "critical", "warning"):
            raise ValueError("severity is critical or warning")
        if max(len(self.cause), len(self.step)) > LONGEST_TEXT:
            raise ValueError(f"a text has more than {LONGEST_TEXT} characters")


_PATH = Path(__file__).parent / "data" / "kernel_lines.toml"
LINES: tuple[KernelLine, ...] = make_entries(
    _PATH, "lines", read_file(_PATH)["lines"], lambda row: entry_of(dict(row), KernelLine)
)
_PATTERNS = tuple(re.compile("|".join(f"(?:{each})" for each in line.patterns), re.IGNORECASE) for line in LINES)


@lru_cache(maxsize=4096)
def kernel_line_in(text: str) -> KernelLine | None:
    """Returns the family of a condition's type, reason and message."""
    text = text[:LONGEST]
    return next((line for line, pattern in zip(LINES, _PATTERNS, strict=True) if pattern.search(text)), None)
