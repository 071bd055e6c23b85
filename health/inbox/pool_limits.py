"""Creates, changes and removes a pool's own limits for a rule."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from edges.transition_errors import LostRace
from fleet.models import Pool
from fleet.pools.changes import POOL_DELETED, GoesWithPool, PoolGone, locked
from health.inbox.refusals import BadAct
from health.models import PoolLimits
from health.rules import RULES
from health.rules.gpus import GPU_RULES
from health.rules.limits import Comparing, Limits
from people.models import AuditEntry, User
from people.rights import NotAllowed, Permission, why_not

COMPARING: Mapping[str, Comparing] = {rule.key: rule for rule in (*GPU_RULES, *RULES) if isinstance(rule, Comparing)}
COLUMNS = ("warn", "critical", "warn_after_s", "critical_after_s")
CHANGED = "Somebody has changed these limits since you read them. Read them again."


@dataclass(frozen=True)
class LimitsAsked:
    """Limits as entered. If `critical` is None, nothing is critical in the pool."""

    warn: float
    critical: float | None
    warn_after_s: int
    critical_after_s: int = 0

    @property
    def limits(self) -> Limits:
        lasting = timedelta(seconds=self.warn_after_s), timedelta(seconds=self.critical_after_s)
        return Limits(self.warn, self.critical, *lasting)


def why_not_limit(user: User, pool: Pool) -> str:
    """Returns why the user may not change the pool's limits; empty if they may.

    It requires the right to change the pool.
    """
    where = f"pool {pool.cluster.name}/{pool.name}"
    return why_not(user, Permission.ADMINISTER, cluster_id=pool.cluster_id, pool_id=pool.pk, where=where)


def require_limit(user: User, pool: Pool) -> None:
    """Requires the right to change the pool's limits.

    :raises NotAllowed: with the sentence of `why_not_limit`
    """
    if said := why_not_limit(user, pool):
        raise NotAllowed(said)


def put_limits(
    pool: Pool, rule: str, asked: LimitsAsked, *, version: int | None, actor: str, reason: str, now: datetime
) -> PoolLimits:
    """Saves a pool's limits. `version` is the one that the user saw; None if the user saw no limits.

    :raises BadAct: when the input makes no valid limits
    :raises LostRace: when the limits changed since the user saw them, or the pool was deleted
    """
    if problems := _problems(rule, asked, reason):
        raise BadAct(*problems)
    columns: dict[str, Any] = {name: getattr(asked, name) for name in COLUMNS}
    columns |= {"by": actor, "at": now, "reason": reason}
    try:
        with transaction.atomic():
            locked(pool)
            before = PoolLimits.objects.filter(pool=pool, rule=rule).first()
            if version is None:
                row = PoolLimits.objects.create(pool=pool, rule=rule, **columns)
            else:
                same = PoolLimits.objects.filter(pool=pool, rule=rule, version=version)
                if not same.update(version=version + 1, **columns):
                    raise LostRace(CHANGED)
                row = PoolLimits.objects.get(pool=pool, rule=rule)
            _record_in_audit(row, "put", before=before, actor=actor, reason=reason, now=now)
    except PoolGone as gone:
        raise LostRace(str(gone)) from gone
    except IntegrityError as error:
        raise LostRace(CHANGED) from error
    return row


def remove_limits(row: PoolLimits, *, version: int | None, actor: str, reason: str, now: datetime) -> None:
    """Removes a pool's limits, so the rule's own apply again. `version` is the one that the user saw; None if unknown.

    :raises BadAct: when no reason is given
    :raises LostRace: when the limits changed since the user saw them
    """
    if not reason:
        raise BadAct(("reason", "Give a reason. It is stored."))
    with transaction.atomic():
        if not PoolLimits.objects.filter(pk=row.pk, version=version or 0).delete()[0]:
            raise LostRace(CHANGED)
        _record_in_audit(row, "remove", before=row, actor=actor, reason=reason, now=now)


def _limits_of_pool(pool: Pool) -> QuerySet[PoolLimits]:
    return PoolLimits.objects.filter(pool=pool).select_related("pool__cluster").order_by("rule")


def _describe(pool: Pool, _: datetime) -> list[str]:
    return [f"Its limits of {row.rule} are removed." for row in _limits_of_pool(pool)]


def _end_limits(pool: Pool, actor: str, now: datetime) -> None:
    for row in _limits_of_pool(pool):
        with suppress(LostRace):  # somebody has removed them since
            remove_limits(row, version=row.version, actor=actor, reason=POOL_DELETED, now=now)


LIMITS_OF_A_POOL = GoesWithPool(_describe, _end_limits)


def _problems(rule: str, asked: LimitsAsked, reason: str) -> list[tuple[str, str]]:
    if rule not in COMPARING:
        return [("rule", f"A pool cannot set limits of this rule. Rules with limits: {', '.join(COMPARING)}.")]
    problems = COMPARING[rule].scale.problems(asked.limits)
    return problems if reason else [*problems, ("reason", "Give a reason. It is shown beside the limits.")]


def _record_in_audit(
    row: PoolLimits, verb: str, *, before: PoolLimits | None, actor: str, reason: str, now: datetime
) -> None:
    values = {name: getattr(row, name) for name in COLUMNS}
    earlier = {name: getattr(before, name) for name in COLUMNS} if before else None
    evidence = {"rule": row.rule, "pool": row.pool.name, "cluster": row.pool.cluster.name, "before": earlier}
    evidence |= {"limits": values if verb == "put" else None}
    subject = f"limits:{row.rule}"[:64]
    # The chain is of all pools: two who write it, one after the other.
    list(AuditEntry.objects.select_for_update().filter(subject=subject, number=1).values_list("pk"))
    AuditEntry.record(subject, verb=f"limits.{verb}", actor=actor, reason=reason, evidence=evidence, now=now)
