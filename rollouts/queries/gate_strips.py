"""The gates without a series of numbers as strips: bars and marks in rows, and the value of each row as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rollouts.gates.approval import GIVEN, ApprovalGate
from rollouts.gates.base import Answer, Gate
from rollouts.gates.compatibility import Compatibility
from rollouts.gates.headroom import Headroom
from rollouts.gates.no_foreign_change import NoForeignChange
from rollouts.gates.soak import UNTIL, Soak
from rollouts.gates.window import Window
from rollouts.models import Approval, GateAnswer, Plan, Stage
from rollouts.queries.strip_values import StripBar, StripMark, StripRow, StripSpan
from rollouts.queries.window_strip import window_rows
from wording.durations import spell
from wording.instants import moment

DRAWN = (ApprovalGate, Compatibility, Headroom, NoForeignChange, Soak, Window)
MOST_ROWS = 12  # of a strip
MOST_ANSWERS = 500  # of the history of a stage's gates
COLOURS = (("Known bad", "bad"), ("Unsupported", "bad"), ("Unknown", "warn"), ("Supported combinations", "ok"))
WITH_HISTORY = (Headroom.key, NoForeignChange.key, Soak.key)
NEEDED, FREE = " needed", " free"  # ends of labels of the gate `headroom`


@dataclass(frozen=True)
class GateStrip:
    gate: Gate
    stage: Stage
    query: str  # what is compared, in words
    rows: Sequence[StripRow]
    newest_at: datetime
    is_quiet: bool  # the gate passed
    span: StripSpan | None = None  # None: the bars are no times


def gate_strips(plan: Plan, stages: Sequence[Stage], *, now: datetime) -> Iterator[GateStrip]:
    """Yields a strip for each such gate that was evaluated. At most nine queries."""
    history = _history(stages)
    for stage in stages:
        current = {answer.gate: answer for answer in stage.answers.all()}
        for gate in stage.gates:
            if (answer := current.get(gate.key)) is not None and isinstance(gate, DRAWN):
                query, rows, span = _drawn(plan, stage, gate, answer, history[stage.pk, gate.key], now=now)
                is_quiet = answer.answer == Answer.PASS
                yield GateStrip(gate, stage, query, rows[:MOST_ROWS], answer.at, is_quiet, span)


StripContent = tuple[str, Sequence[StripRow], StripSpan | None]


def _drawn(
    plan: Plan, stage: Stage, gate: Gate, answer: GateAnswer, history: Sequence[GateAnswer], *, now: datetime
) -> StripContent:
    if isinstance(gate, ApprovalGate):
        return _approvals(plan, stage, gate, answer)
    if isinstance(gate, Compatibility):
        return f"NVIDIA's compatibility matrix, driver {plan.to_version}", list(_combinations(answer)), None
    if isinstance(gate, Headroom):
        return "Free GPUs of the same product on other nodes", list(_room(answer, history)), None
    if isinstance(gate, Soak):
        return _soak(gate, answer, history)
    if isinstance(gate, Window):
        return window_rows(plan, stage, gate, answer, now=now)
    return _foreign_changes(answer, history)


def _history(stages: Sequence[Stage]) -> Mapping[tuple[int, str], list[GateAnswer]]:
    """Returns the earlier and current answers of gates that need them, the oldest first."""
    found: dict[tuple[int, str], list[GateAnswer]] = defaultdict(list)
    rows = GateAnswer.objects.filter(stage__in=stages, gate__in=WITH_HISTORY).defer("steps")
    for row in rows.order_by("-pk")[:MOST_ANSWERS]:
        found[row.stage_id, row.gate].insert(0, row)
    return found


def _approvals(plan: Plan, stage: Stage, gate: ApprovalGate, answer: GateAnswer) -> StripContent:
    """Returns the number of approvals, and when each decision was valid."""
    rows = list(stage.approvals.all())[: MOST_ROWS - 1]
    ends = [row.void_at or row.at + gate.valid_for for row in rows]
    span = StripSpan(min((row.at for row in rows), default=answer.since), max((*ends, answer.at)))
    valid = gate.people if answer.answer == Answer.PASS else answer.value_of(GIVEN) or 0
    given = StripBar(0, valid / gate.people, "ok", f"{valid} given")
    groups = [item for item in answer.evidence if str(item["label"]).startswith("Of group ")]
    found = [
        StripRow("Approvals", f"{valid} of {gate.people}", (given,), (StripMark(1, "limit", f"{gate.people} needed"),)),
        *(StripRow(item["label"], str(item["value"])) for item in groups),
        *(_decision(plan, gate, row, end, span, at=answer.at) for row, end in zip(rows, ends, strict=True)),
    ]
    return f"Decisions on {stage.name}, each valid for {spell(gate.valid_for)}", found, span if rows else None


def _counts(plan: Plan, gate: ApprovalGate, row: Approval, *, at: datetime) -> bool:
    is_by_author = row.by in plan.proposers
    return row.is_standing and not row.is_rejection and not is_by_author and at - row.at <= gate.valid_for


def _decision(
    plan: Plan, gate: ApprovalGate, row: Approval, end: datetime, span: StripSpan, *, at: datetime
) -> StripRow:
    told = f"{'rejected' if row.is_rejection else 'approved'} {moment(row.at, now=at)}"
    if row.void_at:
        told += f", void: {row.void_reason}"
    elif not row.is_rejection:
        told += f", until {moment(end, now=at)}"
    kind = "bad" if row.is_rejection and row.is_standing else "ok" if _counts(plan, gate, row, at=at) else "idle"
    return StripRow(row.by, told, (span.bar(row.at, end, kind, told),), (span.mark(at, "change", "Last evaluation"),))


def _combinations(answer: GateAnswer) -> Iterator[StripRow]:
    """Yields each entry of the matrix that is not plain support, the worst first, and the number of others."""
    for item in answer.evidence:
        kind = next((kind for label, kind in COLOURS if label == item["label"]), "")
        bars = (StripBar(0, 1, kind, item["label"]),) if kind else ()
        yield StripRow(item["label"], str(item["value"]), bars)
    if not answer.evidence:
        yield StripRow("Result", answer.sentence)


def _room(answer: GateAnswer, history: Sequence[GateAnswer]) -> Iterator[StripRow]:
    """Yields for each resource what is free, with the need of the next wave as the bound.

    Where no wave is left or no pod must leave, the newest wave with a need follows.
    """
    if not (yield from _amounts(answer)):
        yield StripRow("Result", answer.sentence)
        earlier = next((row for row in reversed(history) if row.value_of("GPU pods") is not None), None)
        if earlier is not None:
            yield StripRow("An earlier wave", f"at {moment(earlier.at, now=answer.at)}")
            yield from _amounts(earlier)


def _amounts(answer: GateAnswer) -> Generator[StripRow, None, bool]:
    """Yields a row for each amount, and returns whether a resource is needed."""
    amounts = {str(item["label"]): item["value"] for item in answer.evidence}
    names = [label.removesuffix(NEEDED) for label in amounts if label.endswith(NEEDED)]
    pods, homeless = amounts.get("GPU pods"), amounts.get("GPU pods without room")
    for name in names:
        needed, free = int(amounts[name + NEEDED]), int(amounts.get(name + FREE, 0))
        top = max(needed, free, 1)
        bar = StripBar(0, free / top, "ok" if free >= needed else "bad", f"{free} free")
        bound = StripMark(needed / top, "limit", f"{needed} needed")
        yield StripRow(name, f"{free} free, {needed} needed", (bar,), (bound,))
    if pods is not None and homeless is not None:
        bars = (StripBar(0, int(homeless) / max(1, int(pods)), "bad", f"{homeless} without room"),) if homeless else ()
        yield StripRow("GPU pods without room", f"{homeless} of {pods}", bars)
    if (tolerated := amounts.get("Tolerated without room")) is not None:
        yield StripRow("GPUs that may lack room", f"at most {tolerated}")
    return bool(names)


def _soak(gate: Soak, answer: GateAnswer, history: Sequence[GateAnswer]) -> StripContent:
    """Returns the time for which all gates have passed, of the time that is needed, and the runs that were cut."""
    query = "Time for which every other gate passes"
    ended: dict[datetime, datetime] = {}  # begin of each run → when it was last seen
    for row in history:
        if begin := row.value_of("Since"):
            ended[datetime.fromisoformat(begin)] = row.at
    runs = sorted(ended.items())
    if not runs:
        return query, [StripRow("Soak", f"0 s of {spell(gate.duration)}", (), (StripMark(1, "limit", ""),))], None
    until = answer.value_of(UNTIL)
    ends_at = datetime.fromisoformat(until) if until else None  # None: it does not run now
    cut = runs if ends_at is None else runs[:-1]
    last = max(end for _, end in runs)
    span = StripSpan(runs[0][0], max(last, ends_at or last))
    needed = spell(gate.duration)
    bars, marks, elapsed = list[StripBar](), list[StripMark](), timedelta(0)
    if ends_at is not None:
        begin, seen = runs[-1]
        elapsed = min(seen - begin, gate.duration)
        bars = [span.bar(begin, min(seen, ends_at), "ok", "elapsed")]
        bars += [span.bar(seen, ends_at, "idle", "to come")] if seen < ends_at else []
        marks = [span.mark(ends_at, "limit", f"Ends {moment(ends_at, now=seen)}")]
    rows = [StripRow("Soak", f"{spell(elapsed)} of {needed}", tuple(bars), tuple(marks))]
    if cut:
        begun_again = [span.mark(end, "change", f"Interrupted at {moment(end, now=last)}") for _, end in cut]
        runs_cut = [span.bar(begin, end, "warn", spell(end - begin)) for begin, end in cut]
        rows.append(StripRow("Interrupted runs", str(len(cut)), tuple(runs_cut), tuple(begun_again)))
    return query, rows, span


def _foreign_changes(answer: GateAnswer, history: Sequence[GateAnswer]) -> StripContent:
    """Returns when changes by others were seen, in all and by node."""
    rows = sorted(history, key=lambda row: row.at) or [answer]
    span = StripSpan(min(row.since for row in rows), max(row.at for row in rows))
    every, by_node = list[StripBar](), dict[str, list[tuple[StripBar, str]]]()
    before: datetime | None = None
    for row in rows:
        begin = row.since if before is None else max(row.since, before)
        before = row.at
        bar = span.bar(begin, row.at, _colour(row), row.title)
        every.append(bar)
        if row.answer != Answer.PASS and row.cause in {"another", "kept"}:
            for name in row.nodes:
                by_node.setdefault(name, []).append((bar, str(row.value_of(name) or row.title)))
    found = [StripRow("Changed nodes", answer.title, tuple(every))]
    for name, seen in by_node.items():
        found.append(StripRow(name, seen[-1][1], tuple(bar for bar, _ in seen)))
    return "Kernel, OS image, MIG layout, cordon and hold of changed nodes, against their release", found, span


def _colour(row: GateAnswer) -> str:
    if row.answer == Answer.PASS:
        return "ok"
    return "bad" if row.answer == Answer.FAIL else "warn" if row.nodes else "idle"
