"""Since its release only the operator has changed a target, so that the gates evaluate this change alone.

What already halts the plan is not repeated here: another version or template of the driver object, and a held node with
the new driver. The gate adds what rows show of a changed node: a cordon, a foreign skip label, another kernel, OS
image, MIG layout, device plugin configuration or driver object than at the release. The API does not tell who did it,
and a change undone between two observations is not seen.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from rollouts.gates.base import Evidence, Gate, GateResult, TargetEvidence, When
from rollouts.gates.results import fail, passed, sentence_of_first_node, subject, to_come, unknown_before, wait
from wording.numbers import either
from wording.reports import EvidenceItem, first_items

WHO = ("Find out who changed the node.", "Then exclude it, or roll back.")
UNDO = ("Ask the person who did it.", "Undo the cordon or the label, or exclude the node.")


@dataclass(frozen=True)
class NoForeignChange(Gate):
    key: ClassVar[str] = "no_foreign_change"
    title: ClassVar[str] = "No change by others"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        """Returns FAIL for a different machine, and WAIT for a change that somebody can undo."""
        seen = [target for target in evidence.changed if target.is_seen]
        other = [target for target in seen if differences(target)]
        kept = [target for target in seen if _foreign_restraint(target)]
        if other:
            nodes = tuple(target.name for target in other)
            title = f"{subject(nodes)} {either(len(nodes), 'differs', 'differ')} from the state at release"
            summary = sentence_of_first_node(nodes, "; ".join(differences(other[0])))
            items = first_items(EvidenceItem(target.name, "; ".join(differences(target))) for target in other)
            return fail(title, summary, cause="another", nodes=nodes, evidence=items, steps=WHO)
        if kept:
            nodes = tuple(target.name for target in kept)
            title = f"Somebody else changed {subject(nodes)} since the release"
            items = first_items(EvidenceItem(target.name, _foreign_restraint(target)) for target in kept)
            summary = sentence_of_first_node(nodes, f"the node was {_foreign_restraint(kept[0])}")
            return wait(title, summary, cause="kept", nodes=nodes, evidence=items, steps=UNDO)
        if unknown := tuple(target.name for target in seen if target.baseline is None or not target.baseline.traits):
            return unknown_before(unknown, "The state of the node")
        if evidence.not_changed or not seen:
            return to_come(evidence)
        title = f"Nobody else changed {either(len(seen), 'the changed node', f'the {len(seen)} changed nodes')}"
        return passed(title, "Kernel, OS image, MIG layout and cordons are as at the release.")


def differences(target: TargetEvidence) -> list[str]:
    """Returns clauses about differences from the baseline; properties that the baseline lacks are left out."""
    was = target.baseline.traits if target.baseline else {}
    return [
        f"its {title} is {target.traits[title] or 'none'}, and was {before or 'none'}"
        for title, before in was.items()
        if title in target.traits and target.traits[title] != before
    ]


def _foreign_restraint(target: TargetEvidence) -> str:
    was_cordoned = target.baseline is not None and target.baseline.is_unschedulable
    if target.is_unschedulable and not (was_cordoned or target.is_cordoned_by_us):
        return "cordoned"
    return "held" if target.is_held_by_others else ""
