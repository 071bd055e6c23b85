"""Freezes the fleet, a cluster or a pool, stops everything, and lifts both.

Each is one transaction that waits for no plan: the row is in force from its commit. The plans' histories follow in one
short transaction per plan; a sweep writes those of plans that are locked at the moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Count

from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from edges.locks import is_lock_timeout, wait_for_locks
from fleet.models import Cluster, Pool
from fleet.pools.changes import PoolGone, locked
from operations.models import Freeze
from operations.models.freeze import words_of
from people.models import AuditEntry, User
from people.rights import Permission, require, why_not
from rollouts.commands.refusals import BadFreeze, Refusal
from rollouts.lifecycle import IN_FLIGHT, PlanState, TargetState
from rollouts.models import PendingCommand, Plan, StageKind, Target
from rollouts.models.plan import PlanQuerySet, wake_plans
from rollouts.models.transitions import record_event
from rollouts.queries.restraints import GOES_BACK, restores, restraint_by
from wording.numbers import count, either
from wording.sentences import capitalized, with_period

log = structlog.get_logger()

MOST = timedelta(days=366)  # a longer freeze should be the cluster's mode
HELD = frozenset({PlanState.HOLDING, PlanState.PROMOTING})
LIFTED = "A freeze was lifted. The cluster is checked first."


@dataclass(frozen=True)
class Where:
    """The scope of a freeze: a pool, a cluster, or without both the fleet."""

    cluster: Cluster | None = None
    pool: Pool | None = None

    @property
    def words(self) -> str:
        return words_of(self.cluster, self.pool)

    def why_not(self, user, permission: Permission) -> str:
        return why_not(user, permission, cluster_id=self._cluster_id, pool_id=self._pool_id, where=self.words)

    def require(self, user, permission: Permission) -> None:
        """Checks the permission.

        :raises NotAllowed: with the sentence of `why_not`
        """
        require(user, permission, cluster_id=self._cluster_id, pool_id=self._pool_id, where=self.words)

    def keep(self) -> None:
        """Locks the pool until the row that names it is written; call it first in that transaction.

        :raises Refusal: when the pool was deleted
        """
        try:
            if self.pool:
                locked(self.pool)
        except PoolGone as gone:
            raise Refusal(str(gone)) from gone

    def plans(self) -> PlanQuerySet:
        under_way = Plan.objects.under_way()
        return under_way.filter(cluster=self.cluster) if self.cluster else under_way

    @property
    def _cluster_id(self) -> int | None:
        return self.cluster.pk if self.cluster else None

    @property
    def _pool_id(self) -> int | None:
        return self.pool.pk if self.pool else None


@dataclass(frozen=True)
class BoundPlan:
    plan: Plan
    is_bound: bool  # False: the plan rolls back, and this freeze does not bind rollbacks
    to_go: int  # nodes that would stay held
    called_back: int  # nodes released that have not begun
    going_on: int  # nodes that have begun: a freeze does not stop them

    @property
    def sentence(self) -> str:
        if not self.is_bound:
            return "The plan is rolling back and continues: this freeze does not bind rollbacks."
        if self.plan.state == PlanState.ABORTING:
            return (
                "The plan is being aborted: unchanged nodes are released, unless the operator would then change them."
            )
        if not (self.to_go or self.called_back or self.going_on):
            return "No node waits for its release now. Nodes that wait later stay held."
        parts = [
            f"{count(self.to_go, 'node')} {either(self.to_go, 'stays', 'stay')} held",
            f"{self.called_back} released {either(self.called_back, 'is', 'are')} held again"
            if self.called_back
            else "",
            f"{count(self.going_on, 'node')} in progress" if self.going_on else "",
        ]
        return f"{', '.join(part for part in parts if part)}."


def bound_by(where: Where, *, binds_rollbacks: bool, user: User) -> list[BoundPlan]:
    """Returns the visible plans that such a freeze would bind. Three queries at most."""
    plans = list(where.plans().visible_to(user).select_related("cluster").order_by("pk"))
    targets = Target.objects.filter(stage__plan__in=plans)
    if where.pool:
        targets = targets.filter(node_uid__in=where.pool.nodes.values("uid"))
    rows = targets.order_by().values_list("stage__plan", "stage__kind", "state").annotate(number=Count("pk"))
    counts = {(plan, kind == StageKind.ROLLBACK, state): 0 for plan, kind, state, _ in rows}
    for plan, kind, state, number in rows:
        counts[plan, kind == StageKind.ROLLBACK, state] += number
    found = [_bound_plan(plan, counts, binds_rollbacks=binds_rollbacks) for plan in plans]
    return [one for one in found if where.pool is None or one.to_go or one.called_back or one.going_on]


def plans_bound(freezes: Sequence[Freeze], user: User) -> dict[int, int]:
    """Returns how many visible plans in progress each freeze binds, by its key.

    One query, and two more with a frozen pool.
    """
    plans = list(Plan.objects.under_way().visible_to(user).only("cluster", "state", "handed_to"))
    inside = _plans_in_pools(plans, [one.pool_id for one in freezes if one.pool_id])
    return {
        one.pk: sum(
            one.cluster_id in (None, plan.cluster_id)
            and (one.binds_rollbacks or not restores(plan))
            and (one.pool_id is None or (one.pool_id, plan.pk) in inside)
            for plan in plans
        )
        for one in freezes
    }


def _plans_in_pools(plans: Sequence[Plan], pools: Sequence[int]) -> set[tuple[int, int]]:
    if not pools:
        return set()
    members = Pool.nodes.through.objects.filter(pool__in=pools)
    is_rollback = {plan.pk: plan.state in GOES_BACK for plan in plans}
    targets = Target.objects.filter(stage__plan__in=is_rollback, state__in=(TargetState.HELD, *IN_FLIGHT)).order_by()
    rows = targets.filter(node_uid__in=members.values("node__uid"))
    found: dict[str, set[int]] = defaultdict(set)
    for uid, plan, kind in rows.values_list("node_uid", "stage__plan", "stage__kind"):
        if (kind == StageKind.ROLLBACK) == is_rollback[plan]:
            found[uid].add(plan)
    return {(pool, plan) for uid, pool in members.values_list("node__uid", "pool_id") for plan in found.get(uid, ())}


def _bound_plan(plan: Plan, counts: Mapping[tuple[int, bool, str], int], *, binds_rollbacks: bool) -> BoundPlan:
    is_rollback = plan.state in GOES_BACK

    def number(*states: TargetState) -> int:
        return sum(counts.get((plan.pk, is_rollback, state), 0) for state in states)

    return BoundPlan(
        plan,
        is_bound=binds_rollbacks or not restores(plan),
        to_go=number(TargetState.HELD),
        called_back=number(TargetState.RELEASING, TargetState.RELEASED),
        going_on=number(TargetState.CHANGING),
    )


def freeze_scope(freeze: Freeze) -> Where:
    return Where(freeze.cluster, freeze.pool)


def freeze(
    where: Where,
    *,
    actor: str,
    reason: str,
    now: datetime,
    until: datetime | None = None,
    binds_rollbacks: bool = False,
    key: str = "",
) -> Freeze:
    """Freezes the scope: from this commit on no release is recorded in it, and each label write checks again.

    :raises BadFreeze: when its end is past or too far away
    :raises Refusal: when the pool was deleted
    """
    refuse_end(until, now=now)
    row = Freeze(
        cluster=where.cluster, pool=where.pool, by=actor, at=now, reason=reason, until=until,
        binds_rollbacks=binds_rollbacks, key=key,
    )  # fmt: skip
    return _put_in_force(where, row, now=now)


def refuse_end(until: datetime | None, *, now: datetime) -> None:
    """Checks the end of a freeze.

    :raises BadFreeze: when it is past, or so far away that it never ends
    """
    if until is not None and until <= now:
        raise BadFreeze(("until", "This time is in the past. Give a future time, or none."))
    if until is not None and until - now > MOST:
        raise BadFreeze(
            ("until", f"At most {MOST.days} days from now. Leave the end out for a freeze that a person lifts.")
        )


def stop(*, actor: str, reason: str, now: datetime, key: str = "") -> Freeze:
    """Stops the whole fleet: nothing is released anywhere, forward or back, until somebody lifts the stop.

    :raises Refusal: when it is stopped already, with the name of who stopped it
    """
    row = Freeze(by=actor, at=now, reason=reason, binds_rollbacks=True, is_stop=True, key=key)
    return _put_in_force(Where(), row, now=now)


def lift(freeze: Freeze, *, actor: str, reason: str, now: datetime) -> None:
    """Lifts a freeze.

    :raises Refusal: when it is not in force
    """
    with transaction.atomic():
        ends = {"ended_at": now, "ended_by": actor, "ended_reason": reason}
        if not Freeze.objects.in_force(now=now).filter(pk=freeze.pk).update(**ends):
            raise Refusal(f"{_how_it_ended(Freeze.objects.get(pk=freeze.pk))}. It cannot be lifted again.")
        freeze.refresh_from_db()
        AuditEntry.record(freeze.mark, verb="lift", actor=actor, reason=reason, now=now)
        notices = _notify(freeze, LIFTED, verb="lift", actor=actor, reason=reason, now=now)
    _record_all(notices, now=now)
    wake_plans(freeze_scope(freeze).plans(), now=now)


def lift_stop(*, actor: str, reason: str, now: datetime) -> None:
    """Lifts the stop.

    :raises Refusal: when the fleet is not stopped
    """
    standing = stop_in_force(now=now)
    if standing is None:
        raise Refusal("The fleet is not stopped.")
    lift(standing, actor=actor, reason=reason, now=now)


def stop_in_force(*, now: datetime) -> Freeze | None:
    """Returns the fleet's stop; None if there is none. One query."""
    return Freeze.objects.in_force(now=now).filter(is_stop=True).first()


def _put_in_force(where: Where, row: Freeze, *, now: datetime) -> Freeze:
    if same := _freeze_of_key(row, now=now):
        return same
    try:
        notices = _write(where, row, now=now)
    except OperationalError as held:
        if not (row.is_stop and is_lock_timeout(held)):
            raise
        # Somebody is about to lift the last stop, and hangs. A freeze of the fleet binds as much, and has no index that
        # would wait for them.
        row.is_stop, row.key = False, ""
        notices = _write(where, row, now=now)
    except IntegrityError as taken:
        if same := _freeze_of_key(row, now=now):
            return same
        if row.is_stop and (standing := stop_in_force(now=now)):
            raise Refusal(f"The fleet is already stopped. {restraint_by(standing, now=now).sentence}") from taken
        raise
    _record_all(notices, now=now)
    wake_plans(where.plans(), now=now)
    return row


def _write(where: Where, row: Freeze, *, now: datetime) -> list[PendingCommand]:
    with wait_for_locks(), transaction.atomic():
        where.keep()
        row.save(force_insert=True)
        _record(row, now=now)
        sentence = restraint_by(row, now=now).sentence
        return _notify(row, sentence, verb=_verb_of(row), actor=row.by, reason=row.reason, now=now)


def _freeze_of_key(row: Freeze, *, now: datetime) -> Freeze | None:
    """Returns the freeze that this caller's key has already made; None if there is none.

    :raises Refusal: when the key made another freeze or one that has ended
    """
    found = Freeze.objects.filter(by=row.by, key=row.key).first() if row.key else None
    if found is None:
        return None
    earlier = EarlierCommand(_key_of(found), found.at, found.is_in_force(now=now), lambda: f"{_how_it_ended(found)}.")
    return found if is_done(_key_of(row), earlier, refusal=Refusal) else None


def _key_of(row: Freeze) -> IdempotencyKey:
    body = {
        "cluster": row.cluster_id, "pool": row.pool_id, "until": row.until and row.until.timestamp(),
        "binds_rollbacks": row.binds_rollbacks, "reason": row.reason,
    }  # fmt: skip
    return IdempotencyKey.of(row.key, person=row.by, verb=_verb_of(row), body=body)


def _record(row: Freeze, *, now: datetime) -> None:
    evidence = {"scope": row.place, "until": row.until, "binds_rollbacks": row.binds_rollbacks}
    AuditEntry.record(row.mark, verb=_verb_of(row), actor=row.by, reason=row.reason, evidence=evidence, now=now)


def _notify(row: Freeze, sentence: str, *, verb: str, actor: str, reason: str, now: datetime) -> list[PendingCommand]:
    bound = [plan for plan in freeze_scope(row).plans() if row.binds_rollbacks or not restores(plan)]
    what = with_period(f"{capitalized(row.place)}: {reason}")[:1000]
    says = "" if row.pool_id else sentence[:1000]
    given = {"verb": verb, "actor": actor, "at": now, "reason": what, "says": says}
    return PendingCommand.objects.bulk_create(PendingCommand(plan=plan, **given) for plan in bound)


def _record_all(notices: Iterable[PendingCommand], *, now: datetime) -> None:
    """Records notices until a plan is locked; the sweep records the rest."""
    with wait_for_locks():
        for notice in notices:
            try:
                record_notice(notice, now=now)
            except OperationalError as held:
                log.warning(
                    "history of a plan is written later", plan=notice.plan_id, verb=notice.verb, error=str(held)
                )
                return


def record_notice(notice: PendingCommand, *, now: datetime) -> None:
    """Records a stop, a freeze or its end in one plan's history, once, and wakes the plan."""
    with transaction.atomic():
        plan = Plan.objects.select_for_update(no_key=True).get(pk=notice.plan_id)
        if not PendingCommand.objects.filter(pk=notice.pk).delete()[0]:
            return
        told = {"was": "", "to": notice.verb, "actor": notice.actor, "reason": notice.reason}
        record_event(plan=plan, what="command", now=notice.at, **told)
        if notice.says and (plan.state in GOES_BACK or plan.state in HELD):
            plan.say(notice.says)
    plan.wake(now=now)


def _verb_of(row: Freeze) -> str:
    return "stop" if row.is_stop else "freeze"


def _how_it_ended(row: Freeze) -> str:
    if row.ended_at is None:
        return "The freeze has already ended"
    return f"{row.ended_by} has already lifted the freeze"
