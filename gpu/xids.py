"""NVIDIA's catalogue of Xids and recovery actions, from `data/xids.toml`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, TypeVar

from gpu.entry_files import entry_of, make_entries, read_file

E = TypeVar("E")


class XidAction(StrEnum):
    """NVIDIA's immediate actions."""

    IGNORE = "ignore"
    RESTART_APP = "restart-app"  # an application's error; the hardware is not suspected
    RESET_GPU = "reset-gpu"
    DRAIN_AND_RESET = "drain-and-reset"
    RUN_DIAGNOSTICS = "run-diagnostics"
    RESTART_NODE = "restart-node"
    RESTART_VM = "restart-vm"
    CONTACT_SUPPORT = "contact-support"
    CHECK_MECHANICALS = "check-mechanicals"
    UPDATE_SOFTWARE = "update-software"
    CHECK_UVM = "check-uvm"
    FOLLOW_TEXT = "follow-text"
    NVLINK = "nvlink"
    DRAIN_P2P = "drain-p2p"
    RECOVER_IMEX = "recover-imex"


class Fault(StrEnum):
    APPLICATION = "application"
    DRIVER = "driver"
    HARDWARE = "hardware"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class ActionEntry:
    key: XidAction
    fault: Fault = Fault.UNKNOWN
    severity: str = ""  # blank: no finding
    steps: tuple[str, ...] = ()
    source: str
    date: date


@dataclass(frozen=True, kw_only=True)
class XidEntry:
    """The catalogue's entry for some Xids."""

    numbers: tuple[int, ...]
    action: XidAction
    title: str = ""
    steps: tuple[str, ...] = ()  # come after the steps of the action
    fault: Fault | None = None  # None: that of its action
    cause: str = ""  # blank: see its action
    elsewhere: tuple[str, ...] = ()  # what other vendors do for it, each with its source
    outlasts_app: bool = False  # an application's error that also needs a GPU reset, and stays until then
    source: str
    date: date


class XidPattern(StrEnum):
    BESIDE = "beside"  # with another Xid on the same GPU, close enough in time to be one incident
    AGAIN = "again"  # repeated within a time, and on no other GPU of its cluster nearly as often
    # On another GPU nearly as often: within one, since Xids of one job are not recorded at the same moment
    SPREAD = "spread"


@dataclass(frozen=True, kw_only=True)
class XidWorkflow:
    """The action for an Xid in the context of others."""

    numbers: tuple[int, ...]
    pattern: XidPattern
    action: XidAction
    cause: str  # with {other} (the accompanying Xid) or {times}
    source: str
    date: date
    others: frozenset[int] = frozenset()
    times: int = 1
    within_s: int
    step: str = ""  # comes before the steps of its action
    is_of_node: bool = False  # counted on all GPUs of its node; else on the GPU

    @property
    def within(self) -> timedelta:
        return timedelta(seconds=self.within_s)

    def came_with(self, beside: Mapping[int, timedelta]) -> list[int]:
        """Returns the accompanying Xids of one incident. `beside` has the time between each and this one."""
        return sorted(
            number for number, distance in beside.items() if number in self.others and distance <= self.within
        )

    def fits(self, beside: Mapping[int, timedelta], again: int, elsewhere: int) -> bool:
        """Tells whether it applies. `again` counts this GPU's occurrences; `elsewhere` is the highest count on
        another GPU."""
        match self.pattern:
            case XidPattern.BESIDE:
                return bool(self.came_with(beside))
            case XidPattern.AGAIN:
                return again >= self.times and (self.is_of_node or elsewhere < again - 1)
            case XidPattern.SPREAD:
                return elsewhere >= max(again - 1, self.times)


@dataclass(frozen=True, kw_only=True)
class RecoveryAction:
    number: int
    title: str
    action: XidAction
    source: str
    date: date


_PATH = Path(__file__).parent / "data" / "xids.toml"
_TABLES = read_file(_PATH)


def _entries(table: str, kind: type[E]) -> tuple[E, ...]:
    shared = {name: _TABLES[name] for name in ("source", "date")}
    return make_entries(_PATH, table, _TABLES[table], lambda row: entry_of(shared | dict(row), kind))


ACTIONS: Mapping[XidAction, ActionEntry] = {entry.key: entry for entry in _entries("actions", ActionEntry)}
XIDS: Mapping[int, XidEntry] = {number: entry for entry in _entries("xids", XidEntry) for number in entry.numbers}
WORKFLOWS = _entries("workflows", XidWorkflow)
COUNTED_WITHIN: Mapping[int, timedelta] = {
    number: flow.within for flow in WORKFLOWS if flow.pattern is not XidPattern.BESIDE for number in flow.numbers
}
RECOVERY_ACTIONS: Mapping[int, RecoveryAction] = {
    entry.number: entry for entry in _entries("recovery_actions", RecoveryAction)
}
VERDICTS: Mapping[str, XidAction] = {
    **{recovery.title.lower(): recovery.action for recovery in RECOVERY_ACTIONS.values()},
    **{text: XidAction(action) for text, action in _TABLES["verdicts"].items()},
}


def fault_of(number: int) -> Fault:
    """Returns who is probably at fault."""
    entry = XIDS.get(number)
    return (entry.fault or ACTIONS[entry.action].fault) if entry else Fault.UNKNOWN


def workflow_of(number: int, beside: Mapping[int, timedelta], again: int, elsewhere: int) -> XidWorkflow | None:
    """Returns the first matching workflow. None: the catalogue's action counts."""
    flows = (flow for flow in WORKFLOWS if number in flow.numbers)
    return next((flow for flow in flows if flow.fits(beside, again, elsewhere)), None)


_CHANGED_TO = re.compile(r"\bto\b\s*(0x[0-9a-f]+)?\s*(?:\(([^()]*)\)?)?\s*\.?\s*$", re.IGNORECASE)


class RecoveryVerdict(NamedTuple):
    """The recovery action in an Xid 154."""

    title: str  # as in its text; blank: none
    action: XidAction | None  # None: unknown


def verdict_of(text: str) -> RecoveryVerdict:
    """Parses the text after the last "to"; the number counts only without a text."""
    match = _CHANGED_TO.search(text)
    number, title = (match[1], match[2] or "") if match else (None, text)
    title = title.strip()
    if title:
        return RecoveryVerdict(title, VERDICTS.get(title.lower().removesuffix("required").strip()))
    known = RECOVERY_ACTIONS.get(int(number, 16)) if number else None
    return RecoveryVerdict(known.title if known else number or "", known.action if known else None)
