"""The result of a replay, as text for a shell and as JSON."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from health.backtest.backtest import Replayed
from health.backtest.replay import WouldBe
from health.rules.base import Severity
from wording.durations import spell
from wording.numbers import are, count

GAPS_SHOWN = 20


def lines(rule: str, replayed: Sequence[Replayed], *, most: int) -> Iterator[str]:
    for one in replayed:
        yield from _cluster_lines(one, most)
    found = [each for one in replayed for each in one.found]
    known = [one for one in replayed if not one.reason]
    if known:
        paged = sum(each.would_page for each in found)
        told = Counter(each.worst for each in found)
        parts = ", ".join(f"{told[severity]} {severity}" for severity in Severity if told[severity])
        yield (
            f"In all {rule} would have opened {count(len(found), 'finding')} in {count(len(known), 'cluster')}"
            + (f": {parts}" if parts else "")
            + f". {paged} of these {are(paged)} critical: a page to the on-call person."
        )
    if unknown := len(replayed) - len(known):
        yield f"The state of {count(unknown, 'cluster')} is unknown. Their nodes may have had faults."


def _cluster_lines(one: Replayed, most: int) -> Iterator[str]:
    if one.reason or one.begin is None or one.end is None:
        yield f"{one.cluster}: {one.reason}"
        return
    yield f"{one.cluster}: {_minute_text(one.begin)} to {_minute_text(one.end)} UTC, from {one.read}"
    if one.reported_ratio is not None:
        yield f"  telemetry for {one.reported_ratio:.1%} of the time of all GPUs since then"
    for gap in one.gaps[:GAPS_SHOWN]:
        span = f"{_minute_text(gap.begin)} to {_minute_text(gap.end)}"
        yield f"  unknown: {span} ({spell(gap.end - gap.begin)}): {gap.reason}"
    if len(one.gaps) > GAPS_SHOWN:
        yield f"  unknown: {len(one.gaps) - GAPS_SHOWN} more times"
    for note in one.notes:
        yield f"  note: {note}"
    for each in one.found[:most]:
        yield f"  {_line_of(each)}"
    if len(one.found) > most:
        yield f"  and {len(one.found) - most} more"
    for day, number, paged in per_day(one.found):
        yield f"  {day}: {count(number, 'finding')}, {paged} critical"


def per_day(found: Sequence[WouldBe]) -> list[tuple[str, int, int]]:
    """Returns for each day how many findings opened, and how many of them would have paged."""
    opened, paged = Counter[str](), Counter[str]()
    for each in found:
        day = f"{each.opened_at or each.since:%Y-%m-%d}"
        opened[day] += 1
        paged[day] += each.would_page
    return [(day, opened[day], paged[day]) for day in sorted(opened)]


def as_json(rule: str, replayed: Sequence[Replayed]) -> dict[str, Any]:
    return {
        "rule": rule,
        "clusters": [
            {
                "cluster": one.cluster,
                "reason": one.reason,
                "begin": _iso(one.begin),
                "end": _iso(one.end),
                "reported_ratio": one.reported_ratio,
                "gaps": [{"begin": _iso(gap.begin), "end": _iso(gap.end), "reason": gap.reason} for gap in one.gaps],
                "notes": list(one.notes),
                "findings": [
                    {
                        "subject": each.subject,
                        "opened_at": _iso(each.opened_at),
                        "resolved_at": _iso(each.resolved_at),
                        "severity": each.worst,
                        "times": each.times,
                        "sentence": each.last_sentence,
                        "would_page": each.would_page,
                    }
                    for each in one.found
                ],
                "per_day": [
                    {"day": day, "findings": number, "would_page": paged} for day, number, paged in per_day(one.found)
                ],
            }
            for one in replayed
        ],
    }


def _line_of(each: WouldBe) -> str:
    until = _minute_text(each.resolved_at) if each.resolved_at else "still so"
    again = f", opened {each.times} times" if each.times > 1 else ""
    begin, severity = _minute_text(each.opened_at or each.since), each.worst or each.severity
    return f"{begin}  {until:16}  {severity:8}  {each.last_sentence}{again}"


def _minute_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
