"""Mutes a rule in a scope, and lifts mutes. Each is one transaction; the findings in the scope follow.

They follow in batches, since a cluster may have thousands. What a request or a crashed worker leaves, the next
evaluation completes.
"""

import math
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from django.db import IntegrityError, transaction

from edges.idempotency import EarlierCommand, IdempotencyKey, is_done
from edges.slices import slices
from fleet.models import Cluster, Node, Observer, Pool
from fleet.pools.changes import POOL_DELETED, GoesWithPool, PoolGone, locked
from health.evaluation.finding_events import write_events
from health.evaluation.finding_openings import AT_ONCE, TO_MATCH, Openings, lock_findings, unmute
from health.inbox.acts import record, recount
from health.inbox.queries import titles
from health.inbox.refusals import BadAct, FindingRefusal
from health.inbox.verbs import MUTABLE
from health.lifecycle import FindingState
from health.models import Finding, Mute
from health.models.finding import FindingQuerySet
from health.models.mute import MuteQuerySet
from people.models import AuditEntry
from wording.instants import to_the_minute

TIMEOUT_S = 2.0  # a request silences for so long: the next look does the rest
MOST = timedelta(days=14)  # a longer fault is repaired, or the rule is changed
SCOPES = ("finding", "node", "pool", "cluster")


def scoped(finding: Finding, scope: str, *, pool: Pool | None = None) -> Mute:
    """Returns an unsaved mute of this finding's rule: for the finding, its node, a pool or its cluster.

    :raises BadAct: when the finding has no such scope
    """
    mute = Mute(cluster=finding.cluster, rule=finding.rule, node=finding.node)
    if scope == "finding":
        mute.subject, mute.gpu_uuid = finding.subject, finding.gpu_uuid
    elif scope == "node":
        if finding.node is None:
            raise BadAct(("scope", "The finding has no existing node. Mute the finding itself."))
        mute.node_name = finding.node.name
    elif scope == "pool":
        if pool is None or finding.node is None or not pool.nodes.filter(pk=finding.node.pk).exists():
            raise BadAct(("pool", "Name a pool that contains the node."))
        mute.pool, mute.node = pool, None
    elif scope == "cluster":
        mute.node = None
    else:
        raise BadAct(("scope", f"One of: {', '.join(SCOPES)}."))
    return mute


def mute_of_place(cluster: Cluster, rule: str, *, node: Node | None = None, pool: Pool | None = None) -> Mute:
    """Returns an unsaved mute of a rule on a node, in a pool or in a cluster. No finding is needed.

    :raises BadAct: when there is no such rule
    """
    if rule not in titles():
        raise BadAct(("rule", "This rule does not exist. GET /api/v1/rules lists all rules."))
    return Mute(cluster=cluster, rule=rule, node=node, node_name=node.name if node else "", pool=pool)


GIVEN = ("cluster_id", "rule", "subject", "gpu_uuid", "node_name", "pool_id", "reason")  # beside its end


def mute(row: Mute, *, actor: str, reason: str, until: datetime, now: datetime, key: str = "") -> Mute:
    """Saves a mute. Until it ends, nobody is notified of findings in its scope, including later ones.

    :raises BadAct: when its end has passed or is too late, the reason is missing, or its node or pool is gone
    :raises FindingRefusal: when the key belongs to another mute, or to one that has ended
    """
    row.by, row.at, row.reason, row.until, row.key = actor, now, reason, until, key
    if same := _mute_of_key(row, now=now):
        return same
    if problems := _problems(reason, until, now=now):
        raise BadAct(*problems)
    try:
        with transaction.atomic():
            _require_pool(row)
            Cluster.objects.select_for_update(no_key=True).get(pk=row.cluster_id)
            _require_node(row)
            row.save(force_insert=True)
            _record_in_audit(row, "mute", actor=actor, reason=reason, now=now)
    except IntegrityError:
        if same := _mute_of_key(row, now=now):
            return same
        raise
    _silence(row, until=time.monotonic() + TIMEOUT_S, now=now)
    return row


def go_on(cluster: Cluster, *, now: datetime) -> None:
    """Silences findings that a mute covers and that were left. One query without mutes, two more for each mute."""
    for row in Mute.objects.in_force(now=now).filter(cluster=cluster).select_related("cluster", "pool").order_by("pk"):
        _silence(row, until=math.inf, now=now)


def _require_pool(row: Mute) -> None:
    """Locks the pool until the mute is written."""
    try:
        if row.pool:
            locked(row.pool)
    except PoolGone as gone:
        raise BadAct(("pool", str(gone))) from gone


def _require_node(row: Mute) -> None:
    """Locks the node until the mute is written."""
    Observer.lock(row.cluster_id)
    if row.node_id and not Node.objects.filter(pk=row.node_id).exists():
        raise BadAct(("scope", "The node left the cluster after you read the finding. Its findings are resolved."))


def _mute_of_key(row: Mute, *, now: datetime) -> Mute | None:
    """Returns the mute that this caller's key has made already; None without a key or a mute.

    :raises FindingRefusal: when the key belongs to another mute, or to one that has ended
    """
    same = Mute.objects.filter(by=row.by, key=row.key).select_related("cluster", "pool")
    found = same.first() if row.key else None
    if found is None:
        return None
    # A form gives hours from its submission; REST gives an end time.
    ends_alike = row.until - row.at == found.until - found.at
    asked = _key_of(row, until=found.until if ends_alike else row.until)
    earlier = EarlierCommand(
        _key_of(found, until=found.until), found.at, found.is_in_force(now=now), lambda: f"{_end_sentence(found)}."
    )
    return found if is_done(asked, earlier, refusal=FindingRefusal) else None


def _key_of(row: Mute, *, until: datetime) -> IdempotencyKey:
    body = {name: getattr(row, name) for name in GIVEN} | {"until": until.timestamp()}
    return IdempotencyKey.of(row.key, person=row.by, verb="mute", body=body)


def lift(row: Mute, *, actor: str, reason: str, now: datetime) -> None:
    """Lifts a mute.

    :raises FindingRefusal: when it is no longer in force
    """
    if not reason:
        raise BadAct(("reason", "Give a reason. It is stored."))
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).get(pk=row.cluster_id)
        ends = {"ended_at": now, "ended_by": actor, "ended_reason": reason}
        if not Mute.objects.in_force(now=now).filter(pk=row.pk).update(**ends):
            left = Mute.objects.filter(pk=row.pk).first()
            how = _end_sentence(left) if left else "The mute ended with its pool"
            raise FindingRefusal(f"{how}. It cannot be lifted again.")
        row.refresh_from_db()
        _record_in_audit(row, "lift", actor=actor, reason=reason, now=now)
    unmute(cluster, now=now)
    recount(cluster, now=now)


def _mutes_of_pool(pool: Pool, now: datetime) -> MuteQuerySet:
    return Mute.objects.in_force(now=now).filter(pool=pool).select_related("cluster", "pool").order_by("pk")


def _describe(pool: Pool, now: datetime) -> list[str]:
    return [
        f"Its mute of rule {row.rule} until {to_the_minute(row.until)} is lifted." for row in _mutes_of_pool(pool, now)
    ]


def _end_mutes(pool: Pool, actor: str, now: datetime) -> None:
    for row in _mutes_of_pool(pool, now):
        with suppress(FindingRefusal):  # somebody has lifted it since
            lift(row, actor=actor, reason=POOL_DELETED, now=now)


MUTES_OF_A_POOL = GoesWithPool(_describe, _end_mutes)


def _silence(row: Mute, *, until: float, now: datetime) -> None:
    """Silences the findings covered now, with one guarded write each. Findings that would open meanwhile wait for the
    lock.

    No batch begins after `until`, a time of the monotonic clock.
    """
    mutable = row.candidates.filter(state__in=MUTABLE)
    changed = False
    for some in slices(_covered(row, mutable, now=now)):
        if time.monotonic() > until:
            break
        with lock_findings(row.cluster):
            if not Mute.objects.in_force(now=now).filter(pk=row.pk).exists():
                break
            rows = mutable.in_bulk(some.rows)
            muted = []
            for finding in (rows[pk] for pk in some if pk in rows):
                finding.move(FindingState.MUTED, now=now)
                record(finding, "mute", actor=row.by, reason=row.reason, now=now)
                muted.append(finding)
            write_events(muted, "finding.muted", now=now, actor=row.by, reason=row.reason)
        changed = changed or bool(muted)
    if changed:
        recount(row.cluster, now=now)


def _covered(row: Mute, mutable: FindingQuerySet, *, now: datetime) -> Iterator[int]:
    """Yields the keys of the findings that the mute covers. One query for each `AT_ONCE` findings."""
    openings = Openings(row.cluster, now, (row,))
    needed = mutable.select_related("node").only(*TO_MATCH).order_by("pk")
    last = 0
    while rows := list(needed.filter(pk__gt=last)[:AT_ONCE]):
        yield from (each.pk for each in rows if openings.is_muted(each, each.node.name if each.node else ""))
        last = rows[-1].pk


def _problems(reason: str, until: datetime, *, now: datetime) -> list[tuple[str, str]]:
    problems = []
    if not reason:
        problems.append(("reason", "Give a reason. It is shown during the mute."))
    if until <= now:
        problems.append(("until", "This time is in the past. Give a future time."))
    elif until - now > MOST:
        problems.append(("until", f"At most {MOST.days} days from now. After that, the finding is open again."))
    return problems


def _record_in_audit(row: Mute, verb: str, *, actor: str, reason: str, now: datetime) -> None:
    evidence = {"rule": row.rule, "of": row.place, "cluster": row.cluster.name, "until": row.until}
    AuditEntry.record(row.mark, verb=f"mute.{verb}", actor=actor, reason=reason, evidence=evidence, now=now)


def _end_sentence(row: Mute) -> str:
    if row.ended_at is None:
        return "The mute has already ended"
    return f"{row.ended_by} has already lifted the mute"
