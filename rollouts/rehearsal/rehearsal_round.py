"""One round of a requested rehearsal: play the draft in virtual time, and record the outcome."""

from collections.abc import Callable
from datetime import datetime, timedelta

import structlog
from django.db import transaction

from edges.failures import failure_sentence
from edges.transition_errors import LostRace
from rollouts.commands.rehearsals import IN_A_TERMINAL
from rollouts.lifecycle import PlanState
from rollouts.messages.announce import plan_changed
from rollouts.models import Plan, Rehearsal
from rollouts.models.transitions import record_event
from rollouts.rehearsal.faults import FAULTS
from rollouts.rehearsal.outcome import outcome_of
from rollouts.rehearsal.run import Unending, rehearse
from rollouts.rehearsal.virtual_plan import NothingToRehearse, virtual_plan
from wording.durations import spell
from wording.sentences import with_period

log = structlog.get_logger()

LONGEST = timedelta(minutes=2)  # of a worker's time
RENEW_EVERY = timedelta(seconds=10)


class TookTooLong(Exception):
    """The rehearsal takes more of a worker's time than it may."""


def run_rehearsal(key: int, *, owner: str, clock: Callable[[], datetime]) -> None:
    row = Rehearsal.objects.in_force().select_related("plan__cluster").filter(pk=key).first()
    if row is None or not row.take_lease(owner=owner, now=clock()):
        return
    try:
        _rehearse(row, clock=clock)
    except LostRace:
        log.info("a rehearsal was taken over", plan=row.plan.mark)
    except Exception as bug:
        _record_end(row, now=clock(), trouble=f"{failure_sentence(bug)} The worker's log has more.")
        raise


def _rehearse(row: Rehearsal, *, clock: Callable[[], datetime]) -> None:
    plan, now = row.plan, clock()
    try:
        virtual = virtual_plan(plan, FAULTS[row.fault] if row.fault else None, seed=row.seed, now=now)
        if not Plan.objects.filter(pk=plan.pk, state=PlanState.DRAFT, revision=row.revision).exists():
            _record_end(
                row, now=now, trouble="The draft was changed or started since the request. Request a new rehearsal."
            )
            return
        rehearsal = rehearse(
            virtual.fleet, virtual.stages, begins=now, tell=_renewal(row, len(virtual.fleet.nodes), clock)
        )
    except NothingToRehearse as nothing:
        _record_end(row, now=clock(), trouble=f"{nothing} The draft names why each node is left out.")
    except TookTooLong:
        took = f"It took longer than {spell(LONGEST)}, and was ended."
        _record_end(row, now=clock(), trouble=f"{took} {IN_A_TERMINAL.format(plan=plan.pk)}")
    except Unending as unending:
        _record_end(
            row, now=clock(), trouble=f"The plan neither ends nor stops in virtual time. {with_period(str(unending))}"
        )
    else:
        _record_end(row, now=clock(), outcome=outcome_of(virtual, rehearsal))


def _renewal(row: Rehearsal, nodes: int, clock: Callable[[], datetime]) -> Callable[[timedelta, int], None]:
    """Returns what renews the lease and records progress in a long rehearsal, and ends one that takes too long."""
    began = renewed = clock()

    def renew(_: timedelta, released: int) -> None:
        nonlocal renewed
        now = clock()
        if now - began > LONGEST:
            raise TookTooLong
        if now - renewed >= RENEW_EVERY:
            row.keep_lease(now=now)
            row.mine().update(progress={"released": released, "nodes": nodes})
            newest = row.plan.events.values_list("pk", flat=True).first()
            plan_changed(row.plan_id, row.plan.cluster_id, newest or 0)
            renewed = now

    return renew


def _record_end(row: Rehearsal, *, now: datetime, trouble: str = "", **written: dict) -> None:
    """Records the end and notifies open pages."""
    with transaction.atomic():
        if row.end(now=now, trouble=trouble[:1000], **written):
            reason = trouble or written["outcome"]["sentence"]
            record_event(plan=row.plan, what="note", was="", to="rehearsed", now=now, actor="engine", reason=reason)
