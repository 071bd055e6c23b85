"""Checks an evidence file against its audit chain, in both directions. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from edges.digests import digest
from rollouts.evidence.file import Flaw, rows_of

NOTHING = "0" * 64  # predecessor of the first entry
DECISIONS = {"approve", "reject"}  # as verbs of entries
# An entry has some of these fields of a gate result.
ANSWERED = ("answer", "is_advisory", "title", "summary", "evidence", "steps")


def chain_flaws(entries: list[Mapping[str, Any]], subject: str) -> Iterator[Flaw]:
    before: Mapping[str, Any] | None = None
    for number, entry in enumerate(entries):
        at = f"audit[{number}]"
        if entry.get("number") != number + 1 or entry.get("subject") != subject:
            yield Flaw(at, "the entry before it is missing or belongs to another plan")
        elif entry.get("previous_hash") != (before.get("hash") if before else NOTHING):
            yield Flaw(at, "its hash does not follow from the entry before it")
        elif entry.get("hash") != digest(_hashed(entry)):
            yield Flaw(at, "its content was changed after it was written")
        before = entry


def _hashed(entry: Mapping[str, Any]) -> list[Any]:
    names = ("previous_hash", "subject", "number", "at", "actor", "verb", "reason", "evidence")
    return [entry.get(name) for name in names]


def against_the_chain(content: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[Flaw]:
    """Yields decisions, starts and overrides without an audit entry, and entries without their row."""
    audit = rows_of(content, "audit")
    yield from _author_flaws(plan, audit)
    yield from _start_flaws(plan, [entry for entry in audit if entry.get("verb") == "start"])
    yield from _check_overrides(rows_of(content, "overrides"), audit)
    yield from _decision_flaws(rows_of(content, "decisions"), audit)
    yield from _result_flaws(rows_of(content, "answers"), audit)


def _author_flaws(plan: Mapping[str, Any], audit: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    writers = [entry.get("actor") for entry in audit if str(entry.get("verb")) in {"draft", "edit"}]
    if writers and plan.get("author") != writers[0]:
        yield Flaw("plan.author", "the entry of its draft names another person")
    if writers and plan.get("last_editor") != writers[-1]:
        yield Flaw("plan.last_editor", "the entry of its last change names another person")


def _start_flaws(plan: Mapping[str, Any], starts: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    if not plan.get("content_hash"):
        if starts:
            yield Flaw("plan.content_hash", "the audit chain has a start of the plan")
    elif not starts or digest(starts[-1].get("evidence")) != plan.get("content_hash"):
        yield Flaw("plan.sealed", "the entry of its start names another plan")
    elif plan.get("sealed_at") != starts[-1].get("at"):
        yield Flaw("plan.sealed_at", "the entry of its start has another time")


def _decision_flaws(rows: list[Mapping[str, Any]], audit: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    left = [_decided(entry) for entry in audit if str(entry.get("verb")) in DECISIONS]
    altered = 0
    for number, decision in enumerate(rows):
        bundle = decision.get("bundle")
        found = {
            "verb": decision.get("decision"),
            "by": decision.get("by"),
            "reason": decision.get("reason"),
            "hash": decision.get("bundle_hash"),
            "at": decision.get("at"),
            "evidence": bundle.get("evidence") if isinstance(bundle, Mapping) else None,
            "groups": bundle.get("groups") if isinstance(bundle, Mapping) else None,
        }
        if found in left:
            left.remove(found)  # an entry is of one decision
        else:
            altered += 1
            yield Flaw(f"decisions[{number}]", "no entry of the audit chain contains this decision")
    if len(left) > altered:
        yield Flaw("decisions", "the audit chain contains a decision that is missing here")


def _result_flaws(rows: list[Mapping[str, Any]], audit: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    """Yields gate results whose time does not fit the decision or move that rested on them.

    The file has the present result of every gate, so that each entry finds its row.
    """
    told = defaultdict[tuple[str, datetime | None], list[Mapping[str, Any]]](list)
    for entry in audit:
        verb, evidence = str(entry.get("verb")), _evidence_of_entry(entry)
        if verb in DECISIONS:
            for gate, said in _results_by_gate(evidence.get("evidence")):
                told[gate, _instant(said.get("at"))].append(said)
        elif verb.startswith("become "):
            for gate, said in _results_by_gate(evidence.get("answers")):
                told[gate, _instant(entry.get("at"))].append(said)
    shown = set()
    for number, row in enumerate(rows):
        gate = f"{row.get('stage')}:{row.get('gate')}"
        shown.add(gate)
        known = told.get((gate, _instant(row.get("at"))), [])
        if known and not any(_entry_matches_row(said, row) for said in known):
            yield Flaw(f"answers[{number}]", "the audit chain has another gate result at that time")
    if {gate for gate, _ in told} - shown:
        yield Flaw("answers", "the audit chain has a result of a gate that has no result here")


def _results_by_gate(answers: Any) -> list[tuple[str, Mapping[str, Any]]]:
    given = answers.items() if isinstance(answers, Mapping) else ()
    return [(gate, said) for gate, said in given if isinstance(said, Mapping)]


def _entry_matches_row(said: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return all(said[name] == row.get(name) for name in ANSWERED if name in said)


def _instant(at: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(at)
    except (TypeError, ValueError):
        return None


def _check_overrides(rows: list[Mapping[str, Any]], audit: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    names = ("stage", "gate", "said", "until")
    left = [
        (
            entry.get("verb"),
            entry.get("actor"),
            entry.get("at"),
            entry.get("reason"),
            *(_evidence_of_entry(entry).get(name) for name in names),
        )
        for entry in audit
        if str(entry.get("verb")) in {"break-glass", "acknowledge-override"}
    ]
    for number, row in enumerate(rows):
        what = tuple(row.get(name) for name in names)
        found = [("break-glass", row.get("by"), row.get("at"), row.get("reason"), *what)]
        if row.get("acknowledged_by"):
            found.append(("acknowledge-override", row.get("acknowledged_by"), row.get("acknowledged_at"), "", *what))
        if any(each not in left for each in found):
            yield Flaw(f"overrides[{number}]", "no entry of the audit chain contains this")
        left = [each for each in left if each not in found]  # an entry is of one row
    if left:
        yield Flaw("overrides", "the audit chain contains an override or an acknowledgement that is missing here")


def _evidence_of_entry(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    evidence = entry.get("evidence")
    return evidence if isinstance(evidence, Mapping) else {}


def _decided(entry: Mapping[str, Any]) -> dict[str, Any]:
    given = _evidence_of_entry(entry)
    return {
        "verb": entry.get("verb"),
        "by": entry.get("actor"),
        "reason": entry.get("reason"),
        "hash": given.get("bundle_hash"),
        "at": entry.get("at"),
        "evidence": given.get("evidence"),
        "groups": given.get("groups"),
    }
