"""The evidence as a table: each gate with its result at the opening of the page and now."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rollouts.approvals.bundles import Bundle
from rollouts.approvals.shown_bundles import in_one
from rollouts.gates.base import Answer
from rollouts.gates.shared_waits import SharedWait, shared_waits
from rollouts.queries.plan_view import rank
from rollouts.web.shown_evidence import Look


@dataclass(frozen=True)
class GateComparison:
    index: int
    gate: str
    opened: str  # answer; blank: not asked then
    opened_title: str
    now: str  # result now; blank: no longer evaluated
    shown: Mapping[str, Any]  # title, summary, evidence and steps now; empty: no longer evaluated
    nodes: tuple[str, ...] = ()  # that the result is about now

    @property
    def title(self) -> str:
        return self.shown.get("title", "")

    @property
    def summary(self) -> str:
        return self.shown.get("summary", "")

    @property
    def steps(self) -> Sequence[str]:
        return self.shown.get("steps", ())

    @property
    def is_changed(self) -> bool:
        return self.opened != self.now

    @property
    def place(self) -> tuple[bool, tuple[int, bool], int, str]:
        """Returns the sort key: changed results first, then those that are not green."""
        return not self.is_changed, rank(self.now, self.gate), self.index, self.gate


@dataclass(frozen=True)
class AdvisoryRow:
    index: int
    gate: str
    answer: str
    shown: Mapping[str, Any]


@dataclass(frozen=True)
class ApprovalTable:
    rows: list[GateComparison]
    advisory: list[AdvisoryRow]
    locked_reason: str  # why a decision needs a new review first; blank: nothing changed since

    @property
    def groups(self) -> list[GateComparison | SharedWait[GateComparison]]:
        """Returns the rows in their order. Gates of a stage that wait for the same reason are one group."""
        found: list[GateComparison | SharedWait[GateComparison]] = []
        for _, its in groupby(self.rows, lambda row: (row.index, row.is_changed, row.now)):
            rows = list(its)
            if rows[0].now == Answer.WAIT and not rows[0].is_changed:
                shared = shared_waits((row, row) for row in rows)
                found += [group if len(group.lines) > 1 else group.lines[0] for group in shared]
            else:
                found += rows
        return found

    @property
    def not_green(self) -> int:
        return sum(row.now != "pass" for row in self.rows)


def table_of(bundle: Bundle, look: Look | None, changed: Sequence[str]) -> ApprovalTable:
    """Returns the table. `changed` has a sentence per difference."""
    opened = look.answers if look else {}
    titles = look.titles if look else {}
    now: Mapping[str, str] = bundle.content["answers"]
    rows = [_compare_gate(place, opened, titles, now, bundle) for place in {*opened, *now}]
    return ApprovalTable(sorted(rows, key=lambda row: row.place), list(_advisory(bundle)), _locked(look, changed))


def _advisory(bundle: Bundle) -> Iterator[AdvisoryRow]:
    for place, shown in sorted(bundle.evidence.items()):
        if shown["is_advisory"]:
            index, _, gate = place.partition(":")
            yield AdvisoryRow(int(index), gate, shown["answer"], shown)


def _compare_gate(
    place: str, opened: Mapping[str, str], titles: Mapping[str, str], now: Mapping[str, str], bundle: Bundle
) -> GateComparison:
    index, _, gate = place.partition(":")
    return GateComparison(
        index=int(index),
        gate=gate,
        opened=opened.get(place, ""),
        opened_title=titles.get(place, ""),
        now=now.get(place, ""),
        shown=bundle.evidence.get(place, {}),
        nodes=tuple(bundle.nodes.get(place, ())),
    )


def _locked(look: Look | None, changed: Sequence[str]) -> str:
    if look is None:
        return "The version that you read is no longer stored."
    return f"The stage has changed since you read it at {look.at:%H:%M:%S} UTC. {in_one(changed)}" if changed else ""
