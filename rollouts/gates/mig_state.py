"""Nodes with MIG slices before the change have the same slices again: the MIG manager has finished and no slice is
missing.

`mig.config.state` may be from before the change (Z27), so the node's offer counts as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from gpu.labels import MIG_RESOURCES
from rollouts.gates.allocatable_restored import before_and_now, missing_resources, sum_offers
from rollouts.gates.base import Evidence, Gate, GateResult, TargetEvidence, When
from rollouts.gates.results import fail, passed, sentence_of_first_node, subject, to_come, unknown_before, wait
from wording.numbers import count, either
from wording.reports import EvidenceItem, first_items

READ_MANAGER = ("Read the log of the MIG manager on the node.", "Then roll back, or exclude the node.")
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
        watched = [target for target in seen if had_mig(target) or _was_managed(target)]
        was, has = (
            sum_offers(_slices_before(target) for target in cut),
            sum_offers(slices(target.allocatable) for target in cut),
        )
        items = (EvidenceItem("Changed nodes with MIG", len(cut)), *before_and_now(was, has))
        if failed := tuple(target.name for target in watched if target.mig_config_state == FAILED):
            title = f"The MIG manager failed on {subject(failed)}"
            summary = "The label nvidia.com/mig.config.state is failed."
            return fail(title, summary, cause="failed", nodes=failed, evidence=items, steps=READ_MANAGER)
        at_work = [target for target in watched if _waits_for_manager(target)]
        fewer = [target for target in cut if not _waits_for_manager(target) and _lost_slices(target)]
        if gone := [target for target in fewer if now - target.state_since > self.settle]:
            nodes = tuple(target.name for target in gone)
            title = f"{subject(nodes)} {either(len(nodes), 'offers', 'offer')} fewer MIG slices than before"
            summary = sentence_of_first_node(nodes, _lost_slices(gone[0]))
            return fail(title, summary, cause="fewer", nodes=nodes, evidence=items, steps=READ_MANAGER)
        if at_work:
            nodes = tuple(target.name for target in at_work)
            states = first_items(EvidenceItem(one.name, one.mig_config_state or "no state") for one in at_work)
            title = f"The MIG manager has not finished on {subject(nodes)}"
            summary = "The gate waits for the state success in the label nvidia.com/mig.config.state."
            return wait(title, summary, cause="manager", nodes=nodes, evidence=(*items, *states))
        if fewer:
            nodes = tuple(target.name for target in fewer)
            title = f"{subject(nodes)} {either(len(nodes), 'does', 'do')} not offer all MIG slices yet"
            summary = sentence_of_first_node(nodes, _lost_slices(fewer[0]))
            return wait(title, summary, cause="not-yet", nodes=nodes, evidence=items)
        if unknown := tuple(target.name for target in seen if target.baseline is None):
            return unknown_before(unknown, "The MIG layout", items)
        if evidence.not_changed or not seen:
            return to_come(evidence, items)
        if not cut:
            none = either(len(seen), "The changed node had no MIG", f"None of {len(seen)} changed nodes had MIG")
            return passed(f"{none} before", cause="none", evidence=items)
        title = f"{count(len(cut), 'node')} with MIG {either(len(cut), 'has', 'have')} the same slices as before"
        managed = sum(_was_managed(target) for target in cut)
        return passed(title, f"A MIG manager configured {managed} of {count(len(cut), 'node')}.", evidence=items)


def slices(allocatable: Mapping[str, int]) -> dict[str, int]:
    return {name: number for name, number in allocatable.items() if name.startswith(MIG_RESOURCES)}


def had_mig(target: TargetEvidence) -> bool:
    """Returns whether the GPUs were in slices. A MIG manager also reports success on whole GPUs."""
    if target.baseline is None:
        return False
    if target.baseline.mig_gpus is None:  # a baseline of an older version
        return bool(target.baseline.mig_config_state or _slices_before(target))
    return bool(target.baseline.mig_gpus or _slices_before(target))


def _slices_before(target: TargetEvidence) -> Mapping[str, int]:
    return target.baseline.mig_slices if target.baseline else {}


def _waits_for_manager(target: TargetEvidence) -> bool:
    """Returns whether a MIG manager configured the node before; otherwise none is waited for."""
    return _was_managed(target) and target.mig_config_state != SUCCESS


def _was_managed(target: TargetEvidence) -> bool:
    return target.baseline is not None and bool(target.baseline.mig_config_state)


def _lost_slices(target: TargetEvidence) -> str:
    return missing_resources(target, _slices_before(target))
