"""The preview of a resume: nodes, stage and wave, or why nothing."""

from collections.abc import Mapping

from django.utils import timezone

from fleet.models import DriverObject
from rollouts.lifecycle import IN_FLIGHT, PlanState, TargetState
from rollouts.models import Plan, StageKind
from rollouts.node_order.node_selection import AtOnce
from rollouts.queries.driver_nodes import controller_off
from rollouts.queries.plan_view import PlanOnPage, StageOnPage
from wording.lists import names
from wording.numbers import count, either


def resume_says(
    plan: Plan, on_page: PlanOnPage, driver_object: DriverObject | None, at_once: Mapping[int, AtOnce]
) -> str:
    """Returns the sentence; empty if there is nothing to resume. `driver_object` is None if removed. One query."""
    if plan.state != PlanState.HALTED and not on_page.pause:
        return ""
    if on_page.current is None or plan.state in {PlanState.ABORTING, PlanState.DRAFT}:
        return ""
    if plan.state != PlanState.ROLLING_BACK and (why := _why_it_does_not_help(plan, driver_object)):
        return f"Resuming does not help: {why}"
    current = on_page.current
    wave = _next_wave_sentence(plan, current, at_once.get(current.stage.pk))
    goes = f"{wave} {_later_stages_sentence(on_page, current)}".strip()
    if failing := _failing(on_page):
        return f"The plan halts again at once while this fails: {failing}. Once it passes: {goes}"
    return goes


def _why_it_does_not_help(plan: Plan, driver_object: DriverObject | None) -> str:
    """Returns why the next round would halt or wait again; empty if nothing is known."""
    named = f"{plan.object_kind} {plan.object_name}"
    if driver_object is None:
        return f"{named} was deleted or created again, so the plan halts again at once. Abort removes all holds."
    if plan.armed_since and driver_object.version != plan.to_version:
        asks = f"asks for {driver_object.version}" if driver_object.version else "names no version"
        return f"{named} {asks}, and the plan halts again at once. Put {plan.to_version} back first, or roll back."
    off = controller_off(driver_object)
    return f"{off.reason}. No node is released until that is undone." if off else ""


def _next_wave_sentence(plan: Plan, current: StageOnPage, at_once: AtOnce | None) -> str:
    stage = current.stage
    held = [target.node_name for target in current.targets if target.state == TargetState.HELD]
    on_the_way = sum(target.state in IN_FLIGHT for target in current.targets)
    if plan.armed_since is None and plan.state != PlanState.ROLLING_BACK:
        return f"Every node is held first, then {plan.to_version} is written; {stage.name} follows."
    allowed = at_once.nodes if at_once else stage.max_unavailable
    going = held[: max(0, allowed - on_the_way)]
    waves = {target.wave.number for target in current.targets if target.wave}
    if "approval" in stage.gate_options and not (waves and _is_approved(current)):
        waits = "needs a new approval" if waves else "has released no node and waits for its approval"
        return (
            f"{stage.name} {waits}, then {_release_sentence(going, len(held)) if going else 'its gates evaluate it'}."
        )
    if not held:
        under_way = f"; {count(on_the_way, 'node')} on the way" if on_the_way else ""
        return f"No node of {stage.name} is left to release{under_way}."
    if not going:
        return f"{stage.name}: {count(len(held), 'node')} to release, once the nodes on the way are back."
    return f"{stage.name}, wave {max(waves, default=0) + 1}: {_release_sentence(going, len(held))}."


def _is_approved(current: StageOnPage) -> bool:
    """Returns the same as `must_be_approved_again` negated; the evidence may have changed since."""
    return any(each.is_standing and not each.is_rejection for each in current.approvals)


def _release_sentence(going: list[str], held: int) -> str:
    left = held - len(going)
    more = f", {left} more after {either(len(going), 'it', 'them')}" if left else ""
    verb = either(len(going), "goes", "go")
    return f"{names(tuple(going), most=5)} {verb} next ({count(len(going), 'node')} at most{more})"


def _later_stages_sentence(on_page: PlanOnPage, current: StageOnPage) -> str:
    later = [one for one in on_page.stages if one.stage.index > current.stage.index]
    forward = [one for one in later if one.stage.kind != StageKind.ROLLBACK]
    if current.stage.is_rollback or not forward:
        return ""
    nodes = sum(target.state != TargetState.EXCLUDED for one in forward for target in one.targets)
    return f"After it {count(len(forward), 'stage')} with {count(nodes, 'node')}."


def _failing(on_page: PlanOnPage) -> str:
    now = timezone.now()
    failing = [
        f"{gate.title} ({one.stage.name})"
        for one in on_page.stages
        for gate in one.stage.gates
        if not gate.advisory and gate.key not in one.stage.overrides_now(now=now) and _fails(one, gate.key)
    ]
    return ", ".join(failing)


def _fails(one: StageOnPage, gate: str) -> bool:
    return gate in one.answers and one.answers[gate].answer == "fail"
