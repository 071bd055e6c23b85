"""The columns of a node at a moment, from its current row and later changes. Pure.

A column had the old value of the first later change; without a later change, its current value.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

TITLES: Mapping[str, str] = {
    "is_ready": "Ready",
    "is_unschedulable": "Cordoned",
    "is_held": "Held from the upgrade controller",
    "driver_version": "Driver",
    "upgrade_state": "Upgrade",
    "kernel": "Kernel",
    "os_image": "Operating system",
    "container_runtime": "Container runtime",
    "kubelet_version": "Kubelet",
    "gpu_capacity": "Whole GPUs of the node",
    "gpu_allocatable": "Whole GPUs that can be allocated",
    "slices_allocatable": "Slices that can be allocated",
    "shares_allocatable": "Shares that can be allocated",
    "mig_config_state": "MIG manager",
}
WHOLE, PARTS = ("gpu_capacity", "gpu_allocatable"), ("slices_allocatable", "shares_allocatable")
IS_DRIVER_NAMED = "is_driver_named"  # a change without a column: its label disappeared or returned
NO_WORDS: Mapping[str, Mapping[Any, str]] = {
    "is_ready": {True: "yes", False: "no", None: "the kubelet did not report"},
    "is_unschedulable": {True: "yes", False: "no"},
    "is_held": {True: "yes", False: "no"},
    "upgrade_state": {"": "none"},
    "mig_config_state": {"": "says nothing"},
}


@dataclass(frozen=True)
class NodeChange:
    at: datetime
    column: str
    was: Any
    now: Any


@dataclass(frozen=True)
class Fact:
    column: str
    is_known: bool
    value: Any = None
    since: datetime | None = None  # start of the value; None: before the first record
    last: Any = None  # the last known value after its source disappeared

    @property
    def title(self) -> str:
        return TITLES[self.column]

    @property
    def words(self) -> str:
        if not self.is_known:
            return f"unknown: no label had it; the last value was {self.last}" if self.last else "not known"
        words = NO_WORDS.get(self.column, {}).get(self.value)
        if words is None:
            return "not known" if self.value in (None, "") else str(self.value)
        return words


def facts_at(at: datetime, changes: Sequence[NodeChange], now: Mapping[str, Any] | None) -> list[Fact]:
    """Returns the facts. `changes` are all, oldest first. `now` is the row; None: the node left.

    A driver without a label counts as unknown, with its last value.
    """
    by_column = {column: [one for one in changes if one.column == column] for column in TITLES}
    facts = [_fact(column, at, its, now) for column, its in by_column.items()]
    if nameless := _nameless(at, changes, now or {}):
        facts = [replace(nameless, last=fact.value) if fact.column == "driver_version" else fact for fact in facts]
    unsaid = _unknown_columns(facts, ever_cut={column for column in PARTS if by_column[column]})
    return [fact for fact in facts if fact.column not in unsaid]


def _nameless(at: datetime, changes: Sequence[NodeChange], now: Mapping[str, Any]) -> Fact | None:
    """Returns the unknown driver at that moment. None: it was known, or nothing was recorded."""
    told = [one for one in changes if one.column in ("driver_version", IS_DRIVER_NAMED)]
    gone_since = now.get("driver_unknown_since")
    if gone_since is not None:
        told.append(NodeChange(gone_since, IS_DRIVER_NAMED, was=True, now=False))
    before, after = [one for one in told if one.at <= at], [one for one in told if one.at > at]
    if before:
        last = before[-1]
        is_nameless, since = last.column == IS_DRIVER_NAMED and not last.now, last.at
    else:
        is_nameless, since = bool(after) and after[0].column == IS_DRIVER_NAMED and not after[0].was, None
    return Fact("driver_version", is_known=False, since=since) if is_nameless else None


def _unknown_columns(facts: Iterable[Fact], *, ever_cut: set[str]) -> set[str]:
    """Returns columns to omit: parts that the node never had, and unknown whole GPUs of a node with parts."""
    amounts = {fact.column: fact.value for fact in facts}
    parts = {column for column in PARTS if amounts[column]}
    return {*PARTS} - parts - ever_cut | {column for column in WHOLE if parts and amounts[column] is None}


def _fact(column: str, at: datetime, changes: Sequence[NodeChange], now: Mapping[str, Any] | None) -> Fact:
    before = [one for one in changes if one.at <= at]
    since = before[-1].at if before else None
    after = next((one for one in changes if one.at > at), None)
    if after is None and now is None:
        return Fact(column, is_known=bool(before), value=before[-1].now if before else None, since=since)
    value = after.was if after is not None else (now or {}).get(column)
    if before and before[-1].now != value:
        return Fact(column, is_known=False)  # it changed again at an unrecorded time
    return Fact(column, is_known=True, value=value, since=since)


def changes_in(rows: Iterable[tuple[datetime, Mapping[str, Any]]]) -> list[NodeChange]:
    """Returns the changes of columns in timeline entries, and changes of the driver's label."""
    return [change for at, detail in rows for change in _changes_of(at, detail)]


def _changes_of(at: datetime, detail: Mapping[str, Any]) -> Iterator[NodeChange]:
    if detail.keys() in ({"was"}, {"is"}):  # the version before its label disappeared, or after it returned
        yield NodeChange(at, IS_DRIVER_NAMED, was="was" in detail, now="is" in detail)
    for each in (detail, *detail.get("also", ())):
        if each.get("column") in TITLES and "was" in each and "is" in each:
            yield NodeChange(at, each["column"], each["was"], each["is"])
