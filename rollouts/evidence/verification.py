"""Verifies an evidence file from itself alone: no database, no network, no clock. Pure.

It recomputes the hashes of the whole, of each part, of the sealed plan, of each bundle and of the audit chain, and
checks that the bytes are canonical. Then it compares the content with the audit chain in both directions: decisions,
overrides, author, last change, seal, and gate results that an entry names.

Changing one byte changes a hash. Somebody who recomputes all hashes gets another last hash of the chain, and another
file. Some fields have no audit entry: title, cluster and state of the plan, the time and reason of void decisions, the
start and nodes of a result. Only the file's hash, kept elsewhere, protects them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from edges.digests import digest
from rollouts.evidence.chain import NOTHING, against_the_chain, chain_flaws
from rollouts.evidence.file import Flaw, bytes_of, first_difference, hashes_of_parts, parse_evidence_file, rows_of

MAY_BE_THERE = {"overrides", "halts"}  # only of plans with such rows
KEYS = {"format", "plan", "decisions", "answers", "audit", "parts", "hash"}


@dataclass(frozen=True)
class Verified:
    flaws: list[Flaw]
    decisions: int
    entries: int
    last_hash: str  # of the audit chain: compare it with a copy that was stored elsewhere
    file_hash: str  # SHA-256 of its bytes: the same, of all that the chain does not say


def verify(file: bytes) -> Verified:
    """Verifies the file.

    :raises NoEvidence: when it is no JSON, repeats a key, or has another shape
    """
    content = parse_evidence_file(file)
    flaws = list(_find_flaws(content))
    if not flaws and (line := first_difference(file, bytes_of(content))):
        flaws = [Flaw(f"line {line}", "it has the same content as written, but other bytes")]
    audit = rows_of(content, "audit")
    last = str(audit[-1].get("hash")) if audit else NOTHING
    return Verified(flaws, len(rows_of(content, "decisions")), len(audit), last, sha256(file).hexdigest())


def _find_flaws(content: Mapping[str, Any]) -> Iterator[Flaw]:
    """Yields the differences of parts first, then of the whole: if only the whole differs, the change has no hash of
    its own."""
    if odd := sorted((content.keys() ^ KEYS) - MAY_BE_THERE):
        yield Flaw(odd[0], "it is missing, or was added")
    plan = content.get("plan")
    if not isinstance(plan, Mapping):
        yield Flaw("plan", "it is missing")
        plan = {}
    yield from _flaws_of_seal(plan)
    for number, decision in enumerate(rows_of(content, "decisions")):
        yield from _flaws_of_decision(decision, plan, f"decisions[{number}]")
    yield from chain_flaws(rows_of(content, "audit"), str(plan.get("mark")))
    yield from against_the_chain(content, plan)
    yield from _flaws_of_parts(content)
    if digest({key: value for key, value in content.items() if key != "hash"}) != content.get("hash"):
        yield Flaw("hash", "the content as a whole was changed after it was written")


def _flaws_of_parts(content: Mapping[str, Any]) -> Iterator[Flaw]:
    written, found = content.get("parts"), hashes_of_parts(content)
    known = written if isinstance(written, Mapping) else {}
    for place in sorted({*known, *found}):
        if known.get(place) != found.get(place):
            yield Flaw(place, "it was changed after it was written" if place in found else "it is missing")


def _flaws_of_seal(plan: Mapping[str, Any]) -> Iterator[Flaw]:
    sealed, written = plan.get("sealed"), plan.get("content_hash")
    if (sealed or written) and digest(sealed) != written:
        yield Flaw("plan.sealed", "the sealed plan does not match its hash")


def _flaws_of_decision(decision: Mapping[str, Any], plan: Mapping[str, Any], at: str) -> Iterator[Flaw]:
    bundle = decision.get("bundle")
    bound = bundle.get("content") if isinstance(bundle, Mapping) else None
    if not isinstance(bound, Mapping):
        yield Flaw(f"{at}.bundle", "there is no bundle")
        return
    if digest(bound) != decision.get("bundle_hash"):
        yield Flaw(f"{at}.bundle", "the bundle is not the bundle of the decision")
    if bound.get("plan_hash") != plan.get("content_hash"):
        yield Flaw(f"{at}.bundle.content.plan_hash", "the decision belongs to another plan than the sealed plan")
    if bound.get("stage") != decision.get("stage"):
        yield Flaw(f"{at}.stage", "the decision belongs to another stage")
