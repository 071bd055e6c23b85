"""State transitions: by the table, with a guarded update, history row and announcement in one act."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from django.db import models, transaction

from edges.transitions import write_move
from rollouts.messages import announce


class Moving(models.Model):
    """A row whose state only `move()` writes."""

    states: ClassVar[type[StrEnum]]
    moves: ClassVar[Mapping]

    state = models.CharField(max_length=16)
    state_since = models.DateTimeField()
    reason = models.CharField(max_length=1000, blank=True)  # of the last move, for a person

    class Meta:
        abstract = True

    def event_subject(self) -> dict[str, models.Model]:
        """Returns the rows that its events name: `plan`, and `stage` or `target`."""
        raise NotImplementedError

    def move(self, to: StrEnum, *, now: datetime, actor: str, reason: str) -> None:
        """Moves to `to`, and records who moved it and why.

        :raises IllegalMove: if the table does not allow it
        :raises LostRace: if the row has left the state that was read
        """
        was = self.states(self.state)
        subject = self.event_subject()
        reason = reason[:1000]
        with transaction.atomic():
            write_move(self, self.moves, was, to, state_since=now, reason=reason)
            what = self._meta.model_name or ""
            record_event(**subject, what=what, was=was, to=to, now=now, actor=actor, reason=reason)
        self.state, self.state_since, self.reason = to, now, reason


def record_event(
    *, plan, what: str, was: str, to: str, now: datetime, actor: str, reason: str, stage=None, target=None
):
    (event,) = record_events(
        plan=plan, what=what, was={target: was}, to=to, now=now, actor=actor, reason=reason, stage=stage
    )
    return event


def record_events(
    *, plan, what: str, was: Mapping[Any, str], to: str, now: datetime, actor: str, reason: str, stage=None
):
    """Adds an entry for each target, with its earlier state, and notifies browsers once after the commit."""
    from rollouts.models.plan_event import PlanEvent  # the history's row names the rows that use this

    given = {"plan": plan, "stage": stage, "what": what, "to": to, "at": now, "actor": actor, "reason": reason[:1000]}
    events = PlanEvent.objects.bulk_create(
        PlanEvent(target=target, was=state, **given) for target, state in was.items()
    )
    newest = events[-1].pk
    transaction.on_commit(lambda: announce.plan_changed(plan.pk, plan.cluster_id, newest), robust=True)
    return events
