"""Nodes with MIG slices before the change have the same slices again: the MIG manager has finished and no slice is
missing.

`mig.config.state` may be from before the change (Z27), so the node's offer counts as well.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from gpu.labels import MIG_RESOURCES
from rollouts.gates.base import TO_COME, Evidence, Gate, GateResult, TargetEvidence, When, fail, passed, share, wait
from wording.lists import names
from wording.numbers import count, either

SUCCESS, FAILED = "success", "failed"  # of the label nvidia.com/mig.config.state; else pending, rebooting


@dataclass(frozen=True)
class MigState(Gate):
    settle: timedelta = timedelta(minutes=2)  # the device plugin offers slices after the manager is through

    key: ClassVar[str] = "mig_state"
    title: ClassVar[str] = "MIG as before"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        seen = [target for target in evidence.changed if target.is_seen]
        cut = [target for target in seen if had_mig(target)]
        watched = [target for target in seen if target in cut or _was_managed(target)]
        was, has = _sum(_slices_before(target) for target in cut), _sum(slices(target.allocatable) for target in cut)
        measured = {"with MIG": len(cut), "of": len(seen)} | {
            f"{name} {when}": counts[name]
            for name in sorted({*was, *has})
            for when, counts in (("before", was), ("now", has))
        }
        if failed := tuple(target.name for target in watched if target.mig_config_state == FAILED):
            sentence = f"The MIG manager failed on {names(failed)}: mig.config.state is failed."
            return fail(sentence, cause="failed", nodes=failed, measured=measured)
        at_work = [target for target in watched if _waits_for_manager(target)]
        fewer = [target for target in cut if target not in at_work and _lost(target)]
        if gone := tuple(target.name for target in fewer if now - target.state_since > self.settle):
            first = next(target for target in fewer if target.name in gone)
            others = f" {names(gone)} have fewer slices." if gone[1:] else ""
            return fail(f"{first.name} offers {_lost(first)}.{others}", cause="fewer", nodes=gone, measured=measured)
        if at_work:
            nodes = tuple(target.name for target in at_work)
            said = at_work[0].mig_config_state or "gone"
            more = f" ({len(at_work)} nodes in all)" if at_work[1:] else ""
            sentence = f"{at_work[0].name}: mig.config.state is {said}, not success{more}."
            return wait(sentence, cause="manager", nodes=nodes, measured=measured)
        if fewer:
            nodes = tuple(target.name for target in fewer)
            return wait(
                f"{fewer[0].name} offers {_lost(fewer[0])} yet.", cause="not-yet", nodes=nodes, measured=measured
            )
        if unknown := tuple(target.name for target in seen if target.baseline is None):
            sentence = f"How the GPUs of {names(unknown)} were cut before is not known."
            return wait(sentence, cause="unknown-before", nodes=unknown, measured=measured, is_final=True)
        if evidence.not_changed or not seen:
            to_come = f"{share(len(evidence.not_changed), len(evidence.counted))} still to come."
            return wait(to_come, cause=TO_COME, measured=measured)
        if not cut:
            nodes_had = either(len(seen), "The changed node had", f"None of {len(seen)} changed nodes had")
            no = either(len(seen), "no MIG", "MIG")
            return passed(f"{nodes_had} {no} before.", cause="none", measured=measured)
        counts = ", ".join(
            f"{has[name]} {name.removeprefix(MIG_RESOURCES)} where {number} were"
            for name, number in sorted(was.items())
        )
        through = _says_who_cut(cut)
        return passed(f"{through}: {counts}." if counts else f"{through}; none was cut.", measured=measured)


def slices(allocatable: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in allocatable.items() if name.startswith(MIG_RESOURCES)}


def had_mig(target: TargetEvidence) -> bool:
    """Returns whether the GPUs were in slices. A MIG manager also reports success on whole GPUs."""
    if target.baseline is None:
        return False
    if target.baseline.mig_gpus is None:  # a baseline of an older version
        return bool(target.baseline.mig_config_state or _slices_before(target))
    return bool(target.baseline.mig_gpus or _slices_before(target))


def _slices_before(target: TargetEvidence) -> dict[str, int]:
    return slices((target.baseline.allocatable if target.baseline else None) or {})


def _waits_for_manager(target: TargetEvidence) -> bool:
    """Returns whether a MIG manager configured the node before; otherwise none is waited for."""
    return _was_managed(target) and target.mig_config_state != SUCCESS


def _was_managed(target: TargetEvidence) -> bool:
    return target.baseline is not None and bool(target.baseline.mig_config_state)


def _says_who_cut(cut: Sequence[TargetEvidence]) -> str:
    """Returns a clause about nodes with unchanged slices, naming a state only where a manager reports one."""
    managed = sum(_was_managed(target) for target in cut)
    by_hand = len(cut) - managed
    if not managed:
        return f"{count(len(cut), 'node')} with MIG, cut by no MIG manager"
    if not by_hand:
        return f"mig.config.state is success on {count(len(cut), 'node')} with MIG"
    success = f"mig.config.state is success on {managed} of {count(len(cut), 'node')} with MIG"
    return f"{success}, and no MIG manager cut {either(by_hand, 'the other', 'the others')}"


def _lost(target: TargetEvidence) -> str:
    """Returns text such as "12 mig-1g.10gb where 14 were"; empty if no slice is missing."""
    now = slices(target.allocatable)
    fewer = (
        (name, now.get(name, 0), was) for name, was in sorted(_slices_before(target).items()) if now.get(name, 0) < was
    )
    return ", ".join(f"{has} {name.rpartition('/')[2]} where {was} were" for name, has, was in fewer)


def _sum(offers) -> Counter[str]:
    total: Counter[str] = Counter()
    for offer in offers:
        total.update(offer)
    return total
