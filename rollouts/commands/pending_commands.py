"""The sweep, once a second, that records commands given while their plan was locked."""

from datetime import datetime

import structlog
from django.db import OperationalError

from edges.locks import is_lock_timeout, wait_for_locks
from edges.transition_errors import LostRace
from people.models import User
from rollouts.commands.fleet_freezes import record_notice
from rollouts.commands.plan_control import STOPS, record_stop
from rollouts.commands.refusals import Refusal
from rollouts.models import PendingCommand

log = structlog.get_logger()


def record_pending(*, now: datetime) -> None:
    """Records pending commands in their order. Plans that are still locked wait for the next sweep."""
    locked: set[int] = set()
    with wait_for_locks():
        for one in PendingCommand.objects.select_related("plan"):
            if one.plan_id in locked:
                continue
            try:
                _record_pending(one, now=now)
            except Refusal as refusal:
                log.warning("a stop ended unwritten", plan=one.plan.mark, verb=one.verb, reason=str(refusal))
            except LostRace:
                locked.add(one.plan_id)
            except OperationalError as held:
                if not is_lock_timeout(held):
                    raise
                locked.add(one.plan_id)


def _record_pending(one: PendingCommand, *, now: datetime) -> None:
    if one.verb in STOPS:
        record_stop(one, plan=one.plan, actor=User(username=one.actor), now=now)
    else:
        record_notice(one, now=now)
