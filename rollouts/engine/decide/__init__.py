"""Decides the next act of a plan from one snapshot. Pure: no Django, no I/O, no clock."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rollouts.engine.decide.acts import AS_BEFORE, Decision, PlaceHolds, Recall
from rollouts.engine.decide.budget import given_back
from rollouts.engine.decide.cordons import with_affected_nodes, with_cordons
from rollouts.engine.decide.exclusions import with_exclusions
from rollouts.engine.decide.holds import changed_template, hold_all, under_a_stop
from rollouts.engine.decide.plan_abort import abort
from rollouts.engine.decide.promotion import ask, promote
from rollouts.engine.decide.releases import SOON, recall, to_hold
from rollouts.engine.decide.rollback import roll_back
from rollouts.engine.decide.target_progress import follow, newly_served
from rollouts.engine.decide.test_jobs import with_test_jobs
from rollouts.engine.decide.unmanaged_nodes import ABORT_FREES
from rollouts.engine.decide.write_failures import with_troubles
from rollouts.engine.snapshot import Snapshot
from rollouts.lifecycle import IN_FLIGHT, PlanState
from wording.numbers import are, count


def decide(snapshot: Snapshot, *, now: datetime) -> Decision:
    decision = under_a_stop(snapshot, BY_STATE[snapshot.state](snapshot, now=now))
    decision = with_test_jobs(snapshot, decision, now=now)
    decision = with_cordons(snapshot, with_exclusions(snapshot, decision, now=now))
    decision = with_affected_nodes(snapshot, decision)
    return replace(with_troubles(snapshot, decision), given_back=given_back(snapshot), served=newly_served(snapshot))


def stay_halted(snapshot: Snapshot, *, now: datetime) -> Decision:
    """Releases nothing, follows nodes in progress to their end, and recalls released nodes that have not begun."""
    moves = tuple(move for stage in snapshot.forward for move in follow(snapshot, stage))
    results = ask(snapshot, now=now)
    called_back = () if snapshot.version.object_trouble else recall(snapshot)
    # Recalls come first: neither the move of another target nor a late node without its label must delay them.
    if moves:
        return Decision(AS_BEFORE, acts=called_back, moves=moves, results=results, look_again_in=SOON)
    if snapshot.version.object_trouble:
        return Decision(f"Halted. {snapshot.version.object_trouble} {ABORT_FREES}", results=results)
    if snapshot.version.write_intended and (unheld := to_hold(snapshot)):
        sentence = snapshot.says.holding_again.format(nodes=count(len(unheld), "node"))
        return Decision(sentence, acts=(*called_back, PlaceHolds(unheld)), results=results, look_again_in=SOON)
    if snapshot.version.template_change:
        reason = changed_template(snapshot)
        return Decision(f"Halted. {reason}", acts=called_back, results=results, void_reason=reason)
    waits = f"Halted. {_under_way(snapshot, called_back)}A person decides: roll back, resume or abort."
    return Decision(waits, acts=called_back, results=results)


def _under_way(snapshot: Snapshot, called_back: Sequence[Recall]) -> str:
    back = {name for one in called_back for name in one.targets}
    on_the_way = (target for stage in snapshot.forward for target in stage.in_state(*IN_FLIGHT))
    going = [target for target in on_the_way if target.name not in back]
    said = snapshot.says.halted if going else ""
    return said and f"{said.format(nodes=count(len(going), 'node'), are=are(len(going)))} "


BY_STATE = {
    PlanState.HOLDING: hold_all,
    PlanState.PROMOTING: promote,
    PlanState.HALTED: stay_halted,
    PlanState.ROLLING_BACK: roll_back,
    PlanState.ABORTING: abort,
}
