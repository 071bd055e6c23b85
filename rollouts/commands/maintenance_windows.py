from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from django.db import transaction

from fleet.models import Cluster
from people.models import AuditEntry, User
from people.rights import Permission
from rollouts.commands.fleet_freezes import BoundPlan, Where, bound_by
from rollouts.commands.refusals import BadSchedule, Refusal
from rollouts.models import MaintenanceWindow, Plan
from rollouts.models.plan import wake_plans
from rollouts.models.transitions import record_event
from rollouts.queries.restraints import restores, schedules_of
from rollouts.windows import BadWindow, Interval, common
from wording.sentences import capitalized

MOST = 20  # windows of one cluster or pool
SHOWN = 5  # openings that a preview shows
FIELDS = {"starts_at": "first_day", "duration": "duration_s"}  # columns of a window for each field of its schedule
MAY = Permission.ADMINISTER  # who agrees on a cluster or pool: a window that an operator adds would open it


@dataclass(frozen=True)
class WindowPreview:
    opens: list[Interval]  # the next ones, the one that is open now included; of a pool: while its cluster's are, too
    is_open: bool
    bound: list[BoundPlan]  # blank: it is open now


def window_scope(window: MaintenanceWindow) -> Where:
    return Where(window.cluster, window.pool)


def make_window(window: MaintenanceWindow, *, now: datetime) -> MaintenanceWindow:
    """Puts a new window in force.

    :raises BadSchedule: when it never opens, or never together with others that bind the same nodes
    :raises Refusal: when its scope has the maximum number, or is a deleted pool
    """
    refuse_nonsense(window, now=now)
    where = window_scope(window)
    with transaction.atomic():
        where.keep()
        plans = list(where.plans().select_for_update(no_key=True).order_by("pk"))
        Cluster.objects.select_for_update(no_key=True).get(pk=window.cluster_id)
        if MaintenanceWindow.objects.filter(cluster=window.cluster, pool=window.pool).count() >= MOST:
            raise Refusal(f"{capitalized(window.place)} already has {MOST} windows. Remove a window that has ended.")
        window.save(force_insert=True)
        _record_in_audit(window, "make", actor=window.by, reason=window.reason, now=now)
        _notify_plans(plans, window, to="window", actor=window.by, now=now)
    wake_plans(where.plans(), now=now)
    return window


def remove_window(window: MaintenanceWindow, *, actor: str, reason: str, now: datetime) -> None:
    """Removes a window.

    :raises Refusal: when somebody has removed it already
    """
    where = window_scope(window)
    with transaction.atomic():
        plans = list(where.plans().select_for_update(no_key=True).order_by("pk"))
        if not MaintenanceWindow.objects.filter(pk=window.pk).delete()[0]:
            raise Refusal("Somebody has already removed this window.")
        _record_in_audit(window, "remove", actor=actor, reason=reason, now=now)
        _notify_plans(plans, window, to="window removed", actor=actor, now=now)
    wake_plans(where.plans(), now=now)


def preview_window(window: MaintenanceWindow, *, user: User, now: datetime) -> WindowPreview:
    """Returns the preview.

    :raises BadSchedule: as `make_window`
    """
    refuse_nonsense(window, now=now)
    beside, others = schedules_of(window.cluster_id, of_pool=window.pool_id)
    above = [schedules for _, schedules in others] if window.pool_id else []  # no node need be in any of the pools
    opens = list(islice(common([[window.schedule, *beside], *above], after=now), SHOWN))
    is_open = any(each.opens_at <= now for each in opens)
    bound = [] if is_open else bound_by(window_scope(window), binds_rollbacks=False, user=user)
    return WindowPreview(opens, is_open, bound)


def refuse_nonsense(window: MaintenanceWindow, *, now: datetime) -> None:
    """Checks the window.

    :raises BadSchedule: with the field that is wrong
    """
    try:
        window.schedule.refuse_nonsense(now=now)
    except BadWindow as wrong:
        raise BadSchedule((FIELDS.get(wrong.field, wrong.field), str(wrong))) from wrong
    for place in _never_met(window, now=now):
        never = (
            f"This window is never open at the same time as the windows of {place}, so no node there would "
            "ever be released."
        )
        raise BadSchedule(("rule", never))


def _never_met(window: MaintenanceWindow, *, now: datetime) -> Iterator[str]:
    """Yields scopes whose windows bind the same nodes, but are never open at the same time as the new window."""
    its_own, others = schedules_of(window.cluster_id, of_pool=window.pool_id)
    for place, schedules in others:
        if next(common([[window.schedule, *its_own], schedules], after=now), None) is None:
            yield place


def _notify_plans(plans: list[Plan], window: MaintenanceWindow, *, to: str, actor: str, now: datetime) -> None:
    for plan in plans:
        if not restores(plan):
            reason = f"{capitalized(window.place)}: {window}. {window.reason}".strip()
            record_event(plan=plan, what="command", was="", to=to, now=now, actor=actor, reason=reason)


def _record_in_audit(window: MaintenanceWindow, verb: str, *, actor: str, reason: str, now: datetime) -> None:
    AuditEntry.record(window.mark, verb=verb, actor=actor, reason=reason, evidence=_record_of(window), now=now)


def _record_of(window: MaintenanceWindow) -> dict[str, object]:
    names = ("rule", "first_day", "opens_at", "zone", "duration_s")
    return {"scope": window.place, **{name: str(getattr(window, name)) for name in names}}
