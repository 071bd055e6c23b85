"""Releases nodes to a foreign version, after a person's decision and in waves (Z38)."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from django.db import transaction

from edges.transition_errors import LostRace
from kube import client
from operations.ledger.disruptions import NoPlace, record_disruptions
from rollouts.engine.act.holds import free_node, lever_of, want
from rollouts.engine.act.release_checks import why_nothing_is_released
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import HandOver
from rollouts.lifecycle import PlanState
from rollouts.models import Plan
from rollouts.models.plan import PlanQuerySet
from rollouts.queries.restraints import restraints_of, why_not
from wording.lists import names


def hand_over(writer: Writer, act: HandOver) -> str:
    """Hands nodes over, and returns why some remain; empty means all are released."""
    if waits := why_nothing_is_released(writer):
        return waits
    looked = {uid: _why_kept(writer, uid, name) for uid, name in act.nodes.items()}
    going = {uid: name for uid, name in act.nodes.items() if not looked[uid]}
    if going:
        _intend(writer.plan, going, now=writer.clock())
    for uid, name in writer.some(going):
        free_node(writer, uid, name, even_queued=True, may_go=partial(_may_go, writer, uid))
    kept = {act.nodes[uid]: why for uid, why in looked.items() if why}
    return f"{names(tuple(kept))} {next(iter(kept.values()))}." if kept else ""


def _why_kept(writer: Writer, uid: str, name: str) -> str:
    try:
        seen = client.get_node(writer.connection, name)
    except client.Absent:
        return "is gone"
    if seen.uid != uid:
        return "was created again with the same name"
    if not lever_of(writer).may_go(writer, seen):
        return "has already begun, or this plan may no longer release it"
    bound = restraints_of(writer.plan, now=writer.clock()).of_labels(seen.labels)
    return f"stays held: {bound.sentence.rstrip('.')}" if bound else ""


def _intend(plan: Plan, going: Mapping[str, str], *, now: datetime) -> None:
    """Records the handover. One transaction checks everything that forbids it; later rounds repeat it until done.

    :raises LostRace: when the lease has ended, a freeze or the stop is in force, or a failure domain has no room
    """
    with transaction.atomic():
        plan.keep_lease(now=now)
        if not _plan_as_decided(plan).update(state=PlanState.ABORTING):
            raise LostRace("The plan may no longer hand over its nodes.")
        if reason := why_not(plan, list(going), now=now):
            raise LostRace(reason)
        want(plan, going, is_wanted=False, now=now)
        try:
            record_disruptions(plan.cluster_id, going, by=plan.mark, binds_rollbacks=True, now=now)
        except NoPlace as full:
            raise LostRace(str(full)) from full


def _may_go(writer: Writer, uid: str) -> bool:
    """Asks the cluster first, since that takes longest, and then the rows."""
    if why_nothing_is_released(writer) or not _plan_as_decided(writer.plan).exists():
        return False
    return not why_not(writer.plan, [uid], now=writer.clock())


def _plan_as_decided(plan: Plan) -> PlanQuerySet:
    same = {"state": PlanState.ABORTING, "epoch": plan.epoch, "handed_to": plan.handed_to}
    return Plan.objects.filter(pk=plan.pk, **same).exclude(handed_to="")
