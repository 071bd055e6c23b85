"""Every changed node offers as many GPUs of each kind as before. Fewer is a failure, not a wait."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, TargetEvidence, When
from rollouts.gates.results import fail, passed, sentence_of_first_node, subject, to_come, unknown_before, wait
from wording.durations import spell
from wording.numbers import count, either
from wording.reports import EvidenceItem

LOOK = ("Read the log of the device plugin on the node.", "Then roll back, or exclude the node.")


@dataclass(frozen=True)
class AllocatableRestored(Gate):
    settle: timedelta = timedelta(minutes=2)  # the device plugin registers after the driver: until then fewer is a wait

    key: ClassVar[str] = "allocatable_restored"
    title: ClassVar[str] = "GPUs as before"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        short = [target for target in evidence.changed if target.offers_fewer]
        seen = [target for target in evidence.changed if target.is_seen]
        was = sum_offers(target.baseline.allocatable for target in seen if target.baseline)
        has = sum_offers(target.allocatable for target in seen)
        offers = before_and_now(was, has)
        if settled := [target for target in short if now - target.state_since > self.settle]:
            nodes = tuple(target.name for target in settled)
            title = f"{subject(nodes)} {either(len(nodes), 'offers', 'offer')} fewer GPUs than before the change"
            summary = sentence_of_first_node(nodes, missing_resources(settled[0], _allocatable_before(settled[0])))
            return fail(title, summary, cause="fewer", nodes=nodes, evidence=offers, steps=LOOK)
        if short:
            nodes = tuple(target.name for target in short)
            title = f"{subject(nodes)} {either(len(nodes), 'does', 'do')} not offer all GPUs yet"
            summary = f"The device plugin has {spell(self.settle)} to offer them after the change."
            return wait(title, summary, cause="not-yet", nodes=nodes, evidence=offers)
        unknown = tuple(t.name for t in evidence.changed if t.baseline is None or t.baseline.allocatable is None)
        if unknown:
            return unknown_before(unknown, "The number of allocatable GPUs", offers)
        if evidence.not_changed:
            return to_come(evidence, offers)
        title = f"{count(len(seen), 'changed node')} {either(len(seen), 'offers', 'offer')} as many GPUs as before"
        return passed(title, "No resource has a smaller allocatable number.", evidence=offers)


def missing_resources(target: TargetEvidence, before: Mapping[str, int]) -> str:
    """Returns text such as "12 mig-1g.10gb, 14 before"; empty if no resource is missing."""
    now = target.allocatable
    fewer = ((name, now.get(name, 0), number) for name, number in sorted(before.items()) if now.get(name, 0) < number)
    return ", ".join(f"{has} {name.rpartition('/')[2]}, {number} before" for name, has, number in fewer)


def before_and_now(was: Mapping[str, int], has: Mapping[str, int]) -> tuple[EvidenceItem, ...]:
    return tuple(
        EvidenceItem(f"{name} {when}", counts.get(name, 0))
        for name in sorted({*was, *has})
        for when, counts in (("before", was), ("now", has))
    )


def _allocatable_before(target: TargetEvidence) -> Mapping[str, int]:
    return (target.baseline.allocatable if target.baseline else None) or {}


def sum_offers(offers: Iterable[Mapping[str, int] | None]) -> Counter[str]:
    """Returns the offers by resource; whole GPUs, slices and shares are never added up."""
    total: Counter[str] = Counter()
    for offer in offers:
        for name, number in offer.items() if offer else ():
            total[name] += number
    return total
