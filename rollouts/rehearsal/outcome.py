"""The outcome of a rehearsal as figures and labelled rows, for the command, REST, pages and approvers."""

from typing import Any

from rollouts.node_order.node_selection import FACTORS, bound_in_percent
from rollouts.rehearsal.run import RehearsalResult
from rollouts.rehearsal.virtual_plan import VirtualPlan
from wording.durations import spell
from wording.lists import names
from wording.numbers import count
from wording.sentences import with_period

LONGEST_SENTENCE = 500


def outcome_of(virtual: VirtualPlan, rehearsal: RehearsalResult) -> dict[str, Any]:
    """Returns the outcome as JSON: figures, `rows` of a label and a value, and one `sentence`."""
    spared = len(rehearsal.unseen)
    why = "" if rehearsal.stage is None else f", by {_gate(rehearsal)}: {rehearsal.stopped_by}"
    result = with_period(f"{_outcome_text(virtual, rehearsal)}{why}")[:LONGEST_SENTENCE]
    what = virtual.fault.title if virtual.fault else "No fault"
    harm = f" Harmed: {count(len(rehearsal.harmed), 'node')} of {len(virtual.fleet.nodes)}." if virtual.fault else ""
    return {
        "is_complete": rehearsal.is_complete,
        "stage": virtual.stages[rehearsal.stage].name if rehearsal.stage is not None else "",
        "gate": rehearsal.gate,
        "took_s": rehearsal.took.total_seconds(),
        "nodes": len(virtual.fleet.nodes),
        "affected": len(virtual.affected),
        "released": len(rehearsal.changed),
        "harmed": len(rehearsal.harmed),
        "released_without_sign": len(virtual.affected) - len(rehearsal.harmed) - spared,
        "not_released": spared,
        "released_after_sign": rehearsal.released_after_sign,
        "rows": [{"label": label, "value": value} for label, value in _outcome_rows(virtual, rehearsal)],
        "sentence": f"{what}: {result}{harm}{_left_out(virtual)}",
    }


def _outcome_rows(virtual: VirtualPlan, rehearsal: RehearsalResult) -> list[tuple[str, str]]:
    every = len(virtual.fleet.nodes)
    rows = [("Fault", _fault(virtual)), ("Result", _outcome_text(virtual, rehearsal))]
    if rehearsal.stage is not None:
        rows += [("Gate", _gate(rehearsal)), ("Reason", rehearsal.stopped_by)]
    rows += [
        ("Takes", f"{spell(rehearsal.took)}, with every approval given at once"),
        ("Released", f"{count(len(rehearsal.changed), 'node')} of {every}"),
    ]
    if virtual.not_rehearsed:
        rows.append(("Not rehearsed", f"{names(virtual.not_rehearsed)}: a virtual fleet has no hours of GPU telemetry"))
    if not virtual.fault:
        canary = len(virtual.stages[0].nodes)
        rate = bound_in_percent(canary)
        return [*rows, ("Not seen", f"a fault of fewer than {rate} % of the nodes may miss a canary of {canary}")]
    spared = len(rehearsal.unseen)
    silent = len(virtual.affected) - len(rehearsal.harmed) - spared
    harmed = count(len(rehearsal.harmed), "node")
    rows += [
        ("Harmed", f"{harmed}; {silent} released without a sign, {spared} not released"),
        ("Released after the first sign", count(rehearsal.released_after_sign, "node")),
    ]
    if rehearsal.harmed:
        rows.append(("Suspects", f"{rehearsal.suspects.title}. {rehearsal.suspects.summary}"))
    return rows


def _left_out(virtual: VirtualPlan) -> str:
    return f" Not rehearsed: {names(virtual.not_rehearsed)}." if virtual.not_rehearsed else ""


def _fault(virtual: VirtualPlan) -> str:
    if not virtual.fault:
        return "none"
    where = f" with {FACTORS[virtual.fault.factor]} {virtual.value}" if virtual.value else ""
    return f"{virtual.fault.title}: {count(len(virtual.affected), 'node')} of {len(virtual.fleet.nodes)}{where}"


def _outcome_text(virtual: VirtualPlan, rehearsal: RehearsalResult) -> str:
    if rehearsal.stage is None:
        return "every stage passes its rehearsed gates" if virtual.not_rehearsed else "every stage passes"
    passed = names([virtual.stages[index].name for index in rehearsal.passed])
    before = f" after {passed} passed" if passed else ""
    return f"stops in {virtual.stages[rehearsal.stage].name}{before}"


def _gate(rehearsal: RehearsalResult) -> str:
    return rehearsal.gate or "no gate"
