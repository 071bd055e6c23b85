"""A file of evidence, from itself alone: no database, no network, no clock. Pure.

All is worked out again: the hash of the whole and of each part, that of the sealed plan, that of each bundle, and the
chain of audit entries; and the bytes are those that such content is written as. Then they are held against the chain,
both ways: its decisions are these, each once, and so is what was passed over; who wrote the plan, who changed it last,
what was sealed and when are what its entries say; and of an answer that an entry has, so is what was answered.

Whoever alters one byte must alter a hash. Whoever makes all hashes anew, too, ends with another last hash of the chain
where it is in what the chain says, and with another file in any case. In the file alone are the plan's title, cluster
and state, when and why a decision became void, since when and of which nodes an answer is, and answers that no entry
has: whether those are as they were written only the hash of the file tells, kept where the file is not.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from itertools import zip_longest
from typing import Any

from edges.digests import digest

FORMAT = "quarterdeck-evidence/1"
NOTHING = "0" * 64  # what the first entry of a chain follows from
MAY_BE_THERE = {"passed_over"}  # of a plan of which a gate was passed over
KEYS = {"format", "plan", "decisions", "answers", "audit", "parts", "hash"}

DECISIONS = {"approve", "reject"}  # as verbs of entries
ANSWERED = ("answer", "is_advisory", "because", "measured")  # what an entry has of an answer, or some of it
A_PAIR = 2


class NoEvidence(ValueError):
    """The file cannot be read as one of evidence."""


@dataclass(frozen=True)
class Flaw:
    """Something that is not as it was written."""

    field: str  # as decisions[0].bundle
    sentence: str

    def __str__(self) -> str:
        return f"{self.field}: {self.sentence}"


@dataclass(frozen=True)
class Verified:
    flaws: list[Flaw]
    decisions: int
    entries: int
    last_hash: str  # of the audit chain: what to compare with one that was kept elsewhere
    file_hash: str  # SHA-256 of its bytes: the same, of all that the chain does not say


def verify(file: bytes) -> Verified:
    """:raises NoEvidence: when it is no JSON, says a key twice, or is of another shape"""
    content = _read(file)
    flaws = list(_flaws(content))
    if not flaws and (line := _first_difference(file, bytes_of(content))):
        flaws = [Flaw(f"line {line}", "it says the same in other bytes than it was written in")]
    audit = _rows(content, "audit")
    last = str(audit[-1].get("hash")) if audit else NOTHING
    return Verified(flaws, len(_rows(content, "decisions")), len(audit), last, sha256(file).hexdigest())


def bytes_of(content: Mapping[str, Any]) -> bytes:
    """The one way in which such content is written."""
    return (json.dumps(content, indent=1, sort_keys=True) + "\n").encode()


def hashes_of_parts(content: Mapping[str, Any]) -> dict[str, str]:
    """So that what was altered can be named."""
    hashes = {"plan": digest(content.get("plan"))}
    for name in ("decisions", "answers", "audit", "passed_over"):
        rows = content.get(name)
        hashes |= {
            f"{name}[{number}]": digest(row) for number, row in enumerate(rows if isinstance(rows, list) else ())
        }
    return hashes


def _read(file: bytes) -> dict[str, Any]:
    try:
        content = json.loads(file, object_pairs_hook=_once, parse_constant=_no_number)
    except NoEvidence:
        raise
    except (ValueError, RecursionError) as error:
        raise NoEvidence(f"This is no JSON: {error}.") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise NoEvidence(f"This is no file of evidence: its “format” is not {FORMAT}.")
    return content


def _flaws(content: Mapping[str, Any]) -> Iterator[Flaw]:
    """The places first, and then the whole: where only the last speaks, what was altered has no hash of its own."""
    if odd := sorted((content.keys() ^ KEYS) - MAY_BE_THERE):
        yield Flaw(odd[0], "it is missing, or was added")
    plan = content.get("plan")
    if not isinstance(plan, Mapping):
        yield Flaw("plan", "it is missing")
        plan = {}
    yield from _of_the_seal(plan)
    for number, decision in enumerate(_rows(content, "decisions")):
        yield from _of_a_decision(decision, plan, f"decisions[{number}]")
    yield from _of_the_chain(_rows(content, "audit"), str(plan.get("mark")))
    yield from _against_the_chain(content, plan)
    yield from _of_the_parts(content)
    if digest({key: value for key, value in content.items() if key != "hash"}) != content.get("hash"):
        yield Flaw("hash", "the content as a whole is not what was written")


def _of_the_parts(content: Mapping[str, Any]) -> Iterator[Flaw]:
    written, found = content.get("parts"), hashes_of_parts(content)
    known = written if isinstance(written, Mapping) else {}
    for place in sorted({*known, *found}):
        if known.get(place) != found.get(place):
            yield Flaw(place, "it is not what was written" if place in found else "it is missing")


def _of_the_seal(plan: Mapping[str, Any]) -> Iterator[Flaw]:
    sealed, written = plan.get("sealed"), plan.get("content_hash")
    if (sealed or written) and digest(sealed) != written:
        yield Flaw("plan.sealed", "the sealed plan is not what its hash was made of")


def _of_a_decision(decision: Mapping[str, Any], plan: Mapping[str, Any], at: str) -> Iterator[Flaw]:
    bundle = decision.get("bundle")
    bound = bundle.get("content") if isinstance(bundle, Mapping) else None
    if not isinstance(bound, Mapping):
        yield Flaw(f"{at}.bundle", "there is no bundle")
        return
    if digest(bound) != decision.get("bundle_hash"):
        yield Flaw(f"{at}.bundle", "the bundle is not what was decided on")
    if bound.get("plan_hash") != plan.get("content_hash"):
        yield Flaw(f"{at}.bundle.content.plan_hash", "the decision is on another plan than the sealed one")
    if bound.get("stage") != decision.get("stage"):
        yield Flaw(f"{at}.stage", "the decision is on another stage")


def _of_the_chain(entries: list[Mapping[str, Any]], subject: str) -> Iterator[Flaw]:
    before: Mapping[str, Any] | None = None
    for number, entry in enumerate(entries):
        at = f"audit[{number}]"
        if entry.get("number") != number + 1 or entry.get("subject") != subject:
            yield Flaw(at, "an entry before it is missing, or it is of another plan")
        elif entry.get("previous_hash") != (before.get("hash") if before else NOTHING):
            yield Flaw(at, "it does not follow from the entry before it")
        elif entry.get("hash") != digest(_hashed(entry)):
            yield Flaw(at, "its content is not what was written")
        before = entry


def _hashed(entry: Mapping[str, Any]) -> list[Any]:
    """What the hash of an audit entry is of, in its order."""
    names = ("previous_hash", "subject", "number", "at", "actor", "verb", "because", "evidence")
    return [entry.get(name) for name in names]


def _against_the_chain(content: Mapping[str, Any], plan: Mapping[str, Any]) -> Iterator[Flaw]:
    """Nobody writes, starts, decides or passes a gate over without an entry, and no decision's entry is without it."""
    audit = _rows(content, "audit")
    yield from _of_who_wrote_it(plan, audit)
    yield from _of_its_start(plan, [entry for entry in audit if entry.get("verb") == "start"])
    yield from _of_what_was_passed_over(_rows(content, "passed_over"), audit)
    yield from _of_decisions(_rows(content, "decisions"), audit)
    yield from _of_answers(_rows(content, "answers"), audit)


def _of_who_wrote_it(plan: Mapping[str, Any], audit: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    writers = [entry.get("actor") for entry in audit if str(entry.get("verb")) in {"draft", "edit"}]
    if writers and plan.get("author") != writers[0]:
        yield Flaw("plan.author", "the entry of its draft says somebody else")
    if writers and plan.get("last_editor") != writers[-1]:
        yield Flaw("plan.last_editor", "the entry of its last change says somebody else")


def _of_its_start(plan: Mapping[str, Any], starts: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    if not plan.get("content_hash"):
        if starts:
            yield Flaw("plan.content_hash", "the audit chain says that it was started")
    elif not starts or digest(starts[-1].get("evidence")) != plan.get("content_hash"):
        yield Flaw("plan.sealed", "the entry of its start says another plan")
    elif plan.get("sealed_at") != starts[-1].get("at"):
        yield Flaw("plan.sealed_at", "the entry of its start says another time")


def _of_decisions(rows: list[Mapping[str, Any]], audit: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    left = [_decided(entry) for entry in audit if str(entry.get("verb")) in DECISIONS]
    altered = 0
    for number, decision in enumerate(rows):
        bundle = decision.get("bundle")
        found = {
            "verb": decision.get("decision"),
            "by": decision.get("by"),
            "because": decision.get("because"),
            "hash": decision.get("bundle_hash"),
            "at": decision.get("at"),
            "evidence": bundle.get("evidence") if isinstance(bundle, Mapping) else None,
            "groups": bundle.get("groups") if isinstance(bundle, Mapping) else None,
        }
        if found in left:
            left.remove(found)  # an entry is of one decision
        else:
            altered += 1
            yield Flaw(f"decisions[{number}]", "no entry of the audit chain says this decision")
    if len(left) > altered:
        yield Flaw("decisions", "the audit chain says a decision which is not here")


def _of_answers(rows: list[Mapping[str, Any]], audit: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    """What a decision was shown has its time; what a move of the plan rested on rested at the time of its entry.

    Of each gate that ever answered there is what it says now, so that none that an entry names is without a row.
    """
    told = defaultdict[tuple[str, datetime | None], list[Mapping[str, Any]]](list)
    for entry in audit:
        verb, evidence = str(entry.get("verb")), _given(entry)
        if verb in DECISIONS:
            for gate, said in _by_gate(evidence.get("evidence")):
                told[gate, _instant(said.get("at"))].append(said)
        elif verb.startswith("become "):
            for gate, said in _by_gate(evidence.get("answers")):
                told[gate, _instant(entry.get("at"))].append(said)
    shown = set()
    for number, row in enumerate(rows):
        gate = f"{row.get('stage')}:{row.get('gate')}"
        shown.add(gate)
        known = told.get((gate, _instant(row.get("at"))), [])
        if known and not any(_says(said, row) for said in known):
            yield Flaw(f"answers[{number}]", "the audit chain says another answer at that time")
    if {gate for gate, _ in told} - shown:
        yield Flaw("answers", "the audit chain says an answer of a gate which has none here")


def _by_gate(answers: Any) -> list[tuple[str, Mapping[str, Any]]]:
    given = answers.items() if isinstance(answers, Mapping) else ()
    return [(gate, said) for gate, said in given if isinstance(said, Mapping)]


def _says(said: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """An entry has the numbers by their names, and a row has pairs."""
    measured = row.get("measured")
    pairs = [pair for pair in measured if isinstance(pair, list)] if isinstance(measured, list) else []
    shown = dict(row) | {"measured": {str(pair[0]): pair[1] for pair in pairs if len(pair) == A_PAIR}}
    return all(said[name] == shown.get(name) for name in ANSWERED if name in said)


def _instant(at: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(at)
    except (TypeError, ValueError):
        return None


def _of_what_was_passed_over(rows: list[Mapping[str, Any]], audit: list[Mapping[str, Any]]) -> Iterator[Flaw]:
    """Each has its entry, who has looked at it has another, and no entry is without its row."""
    names = ("stage", "gate", "said", "until")
    left = [
        (
            entry.get("verb"),
            entry.get("actor"),
            entry.get("at"),
            entry.get("because"),
            *(_given(entry).get(name) for name in names),
        )
        for entry in audit
        if str(entry.get("verb")) in {"break-glass", "acknowledge-glass"}
    ]
    for number, row in enumerate(rows):
        what = tuple(row.get(name) for name in names)
        found = [("break-glass", row.get("by"), row.get("at"), row.get("because"), *what)]
        if row.get("acknowledged_by"):
            found.append(("acknowledge-glass", row.get("acknowledged_by"), row.get("acknowledged_at"), "", *what))
        if any(each not in left for each in found):
            yield Flaw(f"passed_over[{number}]", "no entry of the audit chain says this")
        left = [each for each in left if each not in found]  # an entry is of one row
    if left:
        yield Flaw("passed_over", "the audit chain says that a gate was passed over, or looked at, which is not here")


def _given(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    evidence = entry.get("evidence")
    return evidence if isinstance(evidence, Mapping) else {}


def _decided(entry: Mapping[str, Any]) -> dict[str, Any]:
    evidence = entry.get("evidence")
    given = evidence if isinstance(evidence, Mapping) else {}
    return {
        "verb": entry.get("verb"),
        "by": entry.get("actor"),
        "because": entry.get("because"),
        "hash": given.get("bundle_hash"),
        "at": entry.get("at"),
        "evidence": given.get("evidence"),
        "groups": given.get("groups"),
    }


def _rows(content: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    rows = content.get(name)
    return [row if isinstance(row, Mapping) else {} for row in rows] if isinstance(rows, list) else []


def _first_difference(file: bytes, written: bytes) -> int:
    """The line; the first is 1. 0: there is none."""
    if file == written:
        return 0
    pairs = zip_longest(file.split(b"\n"), written.split(b"\n"))
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), 1)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise NoEvidence("A key is said twice in one place.")
    return content


def _no_number(name: str) -> None:
    raise NoEvidence(f"{name} is no number")
