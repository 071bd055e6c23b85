"""Requests a rehearsal of a draft. A worker plays it in virtual time; no cluster is asked or touched."""

from datetime import datetime

from django.db import IntegrityError, transaction

from people.models import AuditEntry, User
from people.rights import Permission, why_not
from rollouts.commands.refusals import Refusal
from rollouts.lifecycle import PlanState
from rollouts.models import Plan, Rehearsal
from rollouts.models.transitions import record_event
from rollouts.preflight.picks import forward, pick
from rollouts.queries.driver_nodes import nodes_of
from wording.instants import to_the_second

MOST_NODES = 1_000  # 20 s of a worker with ten nodes at once, 50 s with four; a longer rehearsal is ended
IN_A_TERMINAL = "Run bin/manage rehearse {plan} in a terminal. That command has no limit."


def ask(plan: Plan, *, actor: User, fault: str, seed: int, now: datetime) -> Rehearsal:
    """Requests a rehearsal of the present revision.

    :raises Refusal: when the plan is no draft, takes too many nodes, or another rehearsal of it has not finished
    """
    if reason := why_no_rehearsal(plan):
        raise Refusal(reason)
    nodes = len(pick(forward(plan), list(nodes_of(plan).prefetch_related("pools")), now=now).nodes)
    if nodes > MOST_NODES:
        limit = f"The plan takes {nodes} nodes, and a worker rehearses at most {MOST_NODES}."
        raise Refusal(f"{limit} {IN_A_TERMINAL.format(plan=plan.pk)}")
    who = actor.get_username()
    reason = f"{f'Fault: {fault}' if fault else 'No fault'}. Seed: {seed}. The cluster is not changed."
    try:
        with transaction.atomic():
            row = Rehearsal.objects.create(
                plan=plan, revision=plan.revision, fault=fault, seed=seed, asked_by=who, asked_at=now,
                next_look_at=now, lease_until=now,
            )  # fmt: skip
            AuditEntry.record(plan.mark, verb="rehearse", actor=who, reason=reason, now=now)
            record_event(plan=plan, what="note", was="", to="rehearse", now=now, actor=who, reason=reason)
    except IntegrityError as clash:
        raise Refusal(_in_progress_sentence(plan)) from clash
    Rehearsal.queue_round(row.pk)
    return row


def why_no_rehearsal(plan: Plan) -> str:
    """Returns why the plan cannot be rehearsed now; empty if it can. One query for a draft."""
    if plan.state != PlanState.DRAFT:
        return "Only a draft can be rehearsed."
    return _in_progress_sentence(plan) if plan.rehearsals.in_force().exists() else ""


def why_no_rehearsal_by(user: User, plan: Plan) -> str:
    """Returns the same for one person."""
    where = f"cluster {plan.cluster.name}"
    return why_no_rehearsal(plan) or why_not(user, Permission.DRAFT, cluster_id=plan.cluster_id, where=where)


def _in_progress_sentence(plan: Plan) -> str:
    row = plan.rehearsals.in_force().first()
    asked = f" {row.asked_by} requested it at {to_the_second(row.asked_at)}." if row else ""
    return f"A rehearsal is in progress.{asked} Wait until it finishes."
