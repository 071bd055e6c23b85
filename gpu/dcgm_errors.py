"""Error codes of DCGM's health checks, from `data/dcgm_errors.toml`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path

from gpu.entry_files import entry_of, make_entries, read_file


class DcgmSeverity(StrEnum):
    MONITOR = "monitor"  # the GPU still works
    ISOLATE = "isolate"
    RESET = "reset"  # drain the node and reset the GPU
    TRIAGE = "triage"


@dataclass(frozen=True, kw_only=True)
class DcgmError:
    number: int
    name: str
    severity: DcgmSeverity
    text: str
    step: str = ""
    source: str
    date: date


_PATH = Path(__file__).parent / "data" / "dcgm_errors.toml"
_TABLES = read_file(_PATH)
_SHARED = {name: _TABLES[name] for name in ("source", "date")}
ERRORS: Mapping[int, DcgmError] = {
    error.number: error
    for error in make_entries(_PATH, "errors", _TABLES["errors"], lambda row: entry_of(_SHARED | dict(row), DcgmError))
}
_BY_NAME = {error.name: error for error in ERRORS.values()}
_CODE = re.compile(r"\bDCGMHealthCode(\d{1,3})\b|\b(DCGM_FR_[A-Z0-9_]+)")


def dcgm_error_in(text: str) -> DcgmError | None:
    """Returns the first known error that a text names by its number or its name."""
    named = (ERRORS.get(int(match[1])) if match[1] else _BY_NAME.get(match[2]) for match in _CODE.finditer(text))
    return next(filter(None, named), None)
