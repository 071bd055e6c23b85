"""The GPU stack is up on every changed node: each operand that was Ready before is Ready now."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from rollouts.gates.base import TO_COME, Evidence, Gate, GateResult, TargetEvidence, When, fail, passed, share, wait
from wording.lists import names
from wording.numbers import every


@dataclass(frozen=True)
class OperandsReady(Gate):
    timeout: timedelta = timedelta(minutes=10)  # from the new driver to a ready stack

    key: ClassVar[str] = "operands_ready"
    title: ClassVar[str] = "Operands ready"
    when: ClassVar[When] = When.THROUGH

    def evaluate(self, evidence: Evidence, *, now: datetime) -> GateResult:
        seen = [target for target in evidence.changed if target.is_seen]
        down = [target for target in seen if target.baseline and lacking(target)]
        measured = {"ready": len(seen) - len(down), "of": len(evidence.counted)}
        if down:
            nodes = tuple(target.name for target in down)
            sentence = f"{down[0].name}: {lacking(down[0])}" + (f" ({len(down)} nodes in all)." if down[1:] else ".")
            overdue = any(now - target.state_since > self.timeout for target in down)
            say = fail if overdue else wait
            return say(sentence, cause=lacking(down[0]), nodes=nodes, measured=measured)
        if unknown := tuple(target.name for target in seen if target.baseline is None):
            sentence = f"Which operands were Ready on {names(unknown)} before the change is not known."
            return wait(sentence, cause="unknown-before", nodes=unknown, measured=measured, is_final=True)
        if blind := tuple(target.name for target in seen if not _had_any(target)):
            before = f"No operand was Ready on {names(blind)} before the change"
            sentence = f"{before}: none would be missed, so that nothing shows that the stack is back."
            return wait(sentence, cause="none-before", nodes=blind, measured=measured, is_final=True)
        if evidence.not_changed:
            to_come = f"{share(len(seen), len(evidence.counted))} back with every operand."
            return wait(to_come, cause=TO_COME, measured=measured)
        return passed(f"Every operand is ready on {every(len(evidence.counted), 'node')}.", measured=measured)


def _had_any(target: TargetEvidence) -> bool:
    return target.baseline is not None and bool(target.baseline.operands)


def lacking(target: TargetEvidence) -> str:
    """Returns text on missing operands; empty if none is missing."""
    if target.baseline is None:
        return "what was ready before is not known"
    now_ready = {operand.operand for operand in target.operands if operand.is_ready}
    gone = [operand for operand in target.baseline.operands if operand not in now_ready]
    if not gone:
        return ""
    reasons = {operand.operand: operand.reason for operand in target.operands}
    first = gone[0]
    return f"{first} is not ready" + (f" ({reasons[first]})" if reasons.get(first) else "")
