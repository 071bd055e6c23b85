"""Since its release only the operator has changed a target, so that the gates evaluate this change alone.

What already halts the plan is not repeated here: another version or template of the driver object, and a held node with
the new driver. The gate adds what rows show of a changed node: a cordon, a foreign skip label, another kernel, OS
image, MIG layout, device plugin configuration or driver object than at the release. The API does not tell who did it,
and a change undone between two observations is not seen.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rollouts.gates.base import TO_COME, Evidence, Gate, GateResult, TargetEvidence, When, fail, passed, share, wait
from wording.lists import names
from wording.numbers import are, every


@dataclass(frozen=True)
class NoForeignChange(Gate):
    key: ClassVar[str] = "no_foreign_change"
    title: ClassVar[str] = "No change by others"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        """Returns FAIL for a different machine, and WAIT for a change that somebody can undo."""
        seen = [target for target in evidence.changed if target.is_seen]
        other = [target for target in seen if differences(target)]
        kept = [target for target in seen if _kept_by_others(target)]
        measured = {"another": len(other), "cordoned or held": len(kept), "looked at": len(seen)}
        if other:
            nodes = tuple(target.name for target in other)
            more = f" {names(nodes)} differ from their state at release." if other[1:] else ""
            sentence = f"{other[0].name}: {', '.join(differences(other[0]))}.{more}"
            return fail(sentence, cause="another", nodes=nodes, measured=measured)
        if kept:
            nodes = tuple(target.name for target in kept)
            more = f" ({len(kept)} nodes in all)" if kept[1:] else ""
            sentence = f"{kept[0].name} was {_kept_by_others(kept[0])} by somebody else since its release{more}."
            return wait(sentence, cause="kept", nodes=nodes, measured=measured)
        if unknown := tuple(target.name for target in seen if target.baseline is None or not target.baseline.traits):
            sentence = f"The state of {names(unknown)} at release is unknown."
            return wait(sentence, cause="unknown-before", nodes=unknown, measured=measured, is_final=True)
        if evidence.not_changed or not seen:
            to_come = f"{share(len(evidence.not_changed), len(evidence.counted))} still to come."
            return wait(to_come, cause=TO_COME, measured=measured)
        sentence = f"{every(len(seen), 'node')} {are(len(seen))} unchanged since release, except for the driver."
        return passed(f"{sentence[0].upper()}{sentence[1:]}", measured=measured)


def differences(target: TargetEvidence) -> list[str]:
    """Returns clauses about differences from the baseline; properties that the baseline lacks are left out."""
    was = target.baseline.traits if target.baseline else {}
    return [
        f"its {title} is {target.traits[title] or 'none'}, and was {before or 'none'}"
        for title, before in was.items()
        if title in target.traits and target.traits[title] != before
    ]


def _kept_by_others(target: TargetEvidence) -> str:
    was_cordoned = target.baseline is not None and target.baseline.is_unschedulable
    if target.is_unschedulable and not (was_cordoned or target.is_cordoned_by_us):
        return "cordoned"
    return "held" if target.is_held_by_others else ""
