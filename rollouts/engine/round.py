"""One round of one plan: observe, decide once, act, end. Safe to run twice and to stop anywhere."""

from collections.abc import Callable
from contextlib import closing, suppress
from datetime import datetime, timedelta

import structlog

from edges.failures import failure_sentence
from edges.transition_errors import LostRace
from kube import client
from operations.writer_lease import Forfeit
from rollouts.engine import templates
from rollouts.engine.act import carry_out
from rollouts.engine.approvals import ask_again, void_approvals, void_every_approval
from rollouts.engine.decide import Decision, decide
from rollouts.engine.leftovers import what_is_left
from rollouts.engine.live_state import Live, NodesNow, ask_cluster, ask_nodes
from rollouts.engine.looks import record_looks
from rollouts.engine.observation import observe
from rollouts.engine.record import (
    end_handover,
    give_back,
    make_moves,
    note_armed,
    note_put_back,
    note_served,
    pause,
    record_answers,
    record_cordons,
    record_exclusions,
    record_holds,
)
from rollouts.engine.service_levels import measure_service_levels
from rollouts.engine.snapshot import Snapshot
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from rollouts.models.gate_answer import LONGEST_REASON

log = structlog.get_logger()

NOT_SOON = timedelta(seconds=5)
AFTER_A_BUG = timedelta(seconds=15)


def run_round(plan_id: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    plan = Plan.objects.select_related("cluster").get(pk=plan_id)
    if not plan.is_under_way or not plan.take_lease(owner=owner, now=clock()):
        return
    try:
        waiting_for, wait = _look_and_act(plan, clock=clock)
    except Exception as bug:
        # Nothing was decided and nothing changes; the page shows the error, and the worker's log has the stack.
        reason = f"{failure_sentence(bug)} No node is released until this is solved."
        _end_round(plan, AFTER_A_BUG, reason, clock=clock)
        raise
    _end_round(plan, wait, waiting_for, clock=clock)


def _end_round(plan: Plan, wait: timedelta, waiting_for: str, *, clock: Callable[[], datetime]) -> None:
    """Ends the round. It queues another if somebody woke the plan meanwhile and found it busy."""
    now = clock()
    was_woken = plan.end_lease(now=now, next_look_at=now + wait, waiting_for=waiting_for)
    if was_woken or not wait:
        Plan.queue_round(plan.pk)


def _look_and_act(plan: Plan, *, clock: Callable[[], datetime]) -> tuple[str, timedelta]:
    try:
        with closing(client.connect(plan.cluster.kubeconfig, plan.cluster.context)) as connection:
            return _observe_and_act(plan, connection, clock=clock)
    except client.ClusterError as error:
        log.warning("cluster does not answer", plan=plan.mark, cluster=plan.cluster.name, error=str(error))
        wait = timedelta(seconds=error.retry_after_s or NOT_SOON.total_seconds())
        return f"{plan.cluster.name}: {error}", wait
    except Forfeit as forfeit:
        _pause_all(plan.cluster_id, str(forfeit), clock=clock)
        return str(forfeit), NOT_SOON
    except LostRace as lost:
        return str(lost), timedelta(seconds=1)  # A person or another worker was faster; observe again.


def _pause_all(cluster_id: int, reason: str, *, clock: Callable[[], datetime]) -> None:
    """Pauses the plans of a cluster to which we may not write. Plans with a new command are handled in their own round.

    An aborted plan ignores pauses and continues once we may write again.
    """
    for plan in Plan.objects.under_way().filter(cluster=cluster_id).exclude(state=PlanState.ABORTING):
        with suppress(LostRace):
            pause(plan, reason, told=plan.commands.newest(), now=clock())


def _observe_and_act(
    plan: Plan, connection: client.Connection, *, clock: Callable[[], datetime]
) -> tuple[str, timedelta]:
    told = plan.commands.newest()
    live = ask_cluster(plan, connection)
    now = clock()
    if measure_service_levels(plan, now=now):  # the source may have taken seconds
        now = clock()
        plan.keep_lease(now=now)
    note_armed(plan, live.object_version, now=now)
    note_put_back(plan, live.object_version, now=now)
    templates.learn(plan, live, now=now)
    templates.remember(plan, templates.change(plan, live), now=now)
    end_handover(plan, live.object_version, now=now)
    stages = list(plan.stages.all())
    if ask_again(plan, stages, now=now):
        stages = list(plan.stages.all())
    void_approvals(plan, stages, now=now)
    snapshot, decision = _decide(plan, live, connection, told=told, now=now)
    record_answers(plan, stages, decision.results, now=now)
    make_moves(plan, stages, decision.moves, now=now)
    give_back(plan, decision.given_back, now=now)
    note_served(plan, decision.served, now=now)
    record_looks(plan, stages, [stage for stage in snapshot.forward if stage.index in decision.results], now=now)
    if decision.void_reason:
        void_every_approval(plan, decision.void_reason, now=now)
    if decision.pause_reason:
        told = pause(plan, decision.pause_reason, told=told, now=now)
    undone = [carry_out(plan, act, connection, told=told, clock=clock, asked=live.spec) for act in decision.acts]
    return next(filter(None, undone), decision.waiting_for), decision.look_again_in


def _decide(
    plan: Plan, live: Live, connection: client.Connection, *, told: int | None, now: datetime
) -> tuple[Snapshot, Decision]:
    """Decides on rows. A decision that is final is made again on the nodes as the API server lists them.

    Rows may be older than our last act, and nodes may have left the object with our label.
    """
    snapshot = _load_snapshot(plan, live, told=told, now=now)
    decision = decide(snapshot, now=now)
    if not decision.is_for_good:
        return snapshot, decision
    seen = ask_nodes(plan, connection, live.daemonsets)
    record_holds(plan, seen.nodes, now=now)
    record_exclusions(plan, seen.nodes, now=now)
    record_cordons(plan, seen.nodes, now=now)
    snapshot = _load_snapshot(plan, live, told=told, now=now, seen=seen)
    decision = decide(snapshot, now=now)
    if not decision.ends:
        return snapshot, decision
    left = what_is_left(plan, seen.nodes, connection, now=now, room=LONGEST_REASON - 1 - decision.longest_reason)
    return snapshot, decision.ending_with(left) if left else decision


def _load_snapshot(
    plan: Plan, live: Live, *, told: int | None, now: datetime, seen: NodesNow | None = None
) -> Snapshot:
    snapshot = observe(plan, live, now=now, seen=seen)
    _check_nobody_moved_it(plan, told)
    return snapshot


def _check_nobody_moved_it(plan: Plan, told: int | None) -> None:
    """Checks that no command came while plan, targets and holds were read one after the other.

    :raises LostRace: when one did
    """
    is_as_it_was = Plan.objects.filter(pk=plan.pk, state=plan.state, epoch=plan.epoch).exists()
    if not is_as_it_was or plan.commands.newest() != told:
        raise LostRace("Another process changed the state of the plan during this round.")
