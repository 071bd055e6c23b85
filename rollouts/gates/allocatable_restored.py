"""Every changed node offers as many GPUs of each kind as before. Fewer is a failure, not a wait."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import TO_COME, Evidence, Gate, GateResult, TargetEvidence, When, fail, passed, share, wait
from wording.lists import names
from wording.numbers import either


@dataclass(frozen=True)
class AllocatableRestored(Gate):
    settle: timedelta = timedelta(minutes=2)  # the device plugin registers after the driver: until then fewer is a wait

    key: ClassVar[str] = "allocatable_restored"
    title: ClassVar[str] = "GPUs as before"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        short = [target for target in evidence.changed if fewer(target)]
        seen = [target for target in evidence.changed if target.is_seen]
        was = _sum(target.baseline.allocatable for target in seen if target.baseline)
        has = _sum(target.allocatable for target in seen)
        measured = _measured(was, has)
        settled = tuple(target.name for target in short if now - target.state_since > self.settle)
        if settled:
            offers = either(len(settled), "offers", "offer")
            sentence = f"{names(settled)} {offers} fewer GPUs than before the change."
            return fail(sentence, cause="fewer", nodes=settled, measured=measured)
        if short:
            nodes = tuple(target.name for target in short)
            return wait(
                f"{names(nodes)} {either(len(nodes), 'does not offer all its', 'do not offer all their')} GPUs yet.",
                cause="not-yet",
                nodes=nodes,
                measured=measured,
            )
        unknown = tuple(t.name for t in evidence.changed if t.baseline is None or t.baseline.allocatable is None)
        if unknown:
            reason = f"How many GPUs {names(unknown)} offered before is not known."
            return wait(reason, cause="unknown-before", nodes=unknown, measured=measured, is_final=True)
        if evidence.not_changed:
            to_come = f"{share(len(evidence.not_changed), len(evidence.counted))} still to come."
            return wait(to_come, cause=TO_COME, measured=measured)
        counts = ", ".join(f"{has[name]} {name} where {number} were" for name, number in sorted(was.items()))
        return passed(f"Allocatable: {counts}.", measured=measured)


def fewer(target: TargetEvidence) -> bool:
    """Returns whether the node offers less of some resource. The offer of an unseen node is unknown."""
    if not target.is_seen or target.baseline is None or target.baseline.allocatable is None:
        return False
    return any(target.allocatable.get(name, 0) < number for name, number in target.baseline.allocatable.items())


def _sum(offers: Iterable[Mapping[str, int] | None]) -> Counter[str]:
    """Returns the offers by resource; whole GPUs, slices and shares are never added up."""
    total: Counter[str] = Counter()
    for offer in offers:
        total.update(offer or {})
    return total


def _measured(was: Mapping[str, int], has: Mapping[str, int]) -> dict[str, int]:
    return {
        f"{name} {when}": counts.get(name, 0)
        for name in sorted({*was, *has})
        for when, counts in (("before", was), ("now", has))
    }
