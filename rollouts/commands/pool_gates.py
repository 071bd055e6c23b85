"""The gates of new plans on the nodes of a pool: previewed, changed, and put back."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from edges.digests import digest
from fleet.models import Pool
from fleet.pools.changes import POOL_DELETED, GoesWithPool, PoolGone, locked
from people.models import AuditEntry, User
from people.rights import Permission, require
from rollouts.commands.documents import gates_as_yaml
from rollouts.commands.refusals import BadPlan, OutOfDate
from rollouts.commands.stage_drafts import gates_by_default
from rollouts.gates.options import BadGate, read_gates
from rollouts.models import PoolGates
from rollouts.preflight.extremes import never_met
from rollouts.queries.pool_gates import ClusterGates, PoolOptions, gates_of

LENGTH = 16  # characters of a mark
MAY = Permission.ADMINISTER  # as for the other settings of a pool


@dataclass(frozen=True)
class PoolGatesPreview:
    """A change of the gates of a pool, and of the default gates of its new stages."""

    was: PoolOptions
    to: PoolOptions
    diff: Sequence[str]  # lines of the default gates as YAML, each with + or - or a blank
    mark: str  # of the gates as they are now

    @property
    def is_change(self) -> bool:
        return dict(self.was) != dict(self.to)


def mark_of(options: PoolOptions) -> str:
    return digest(dict(options))[:LENGTH]


def preview_gates(pool: Pool, options: PoolOptions) -> PoolGatesPreview:
    """Returns what the change does to the default gates of new stages. Changes nothing.

    :raises BadPlan: with each gate that cannot be read
    """
    _check(options)
    row = gates_of(pool)
    was: PoolOptions = row.options if row else {}
    before, after = (_default_gates(pool, each) for each in (was, options))
    changed = [line for line in difflib.ndiff(before, after) if not line.startswith("?")]
    return PoolGatesPreview(was, options, changed, mark_of(was))


def with_gate(pool: Pool, gate: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the gates of the pool with one more."""
    row = gates_of(pool)
    return {**(row.options if row else {}), gate: dict(options)}


def change_gates(pool: Pool, options: PoolOptions, *, seen: str, actor: User, reason: str, now: datetime) -> PoolGates:
    """Sets the gates of new plans of a pool. Existing plans keep their gates.

    `seen`: the mark of the gates that the person saw.

    :raises BadPlan: without a reason, or with each gate that cannot be read
    :raises NotAllowed: without the right
    :raises OutOfDate: when somebody changed them since
    """
    require(actor, MAY, cluster_id=pool.cluster_id, where=f"cluster {pool.cluster.name}")
    if not reason.strip():
        raise BadPlan(("reason", "Give a reason. It is stored."))
    _check(options)
    with transaction.atomic():
        try:
            locked(pool)
        except PoolGone as gone:
            raise OutOfDate(str(gone)) from gone
        row = gates_of(pool)
        was: PoolOptions = row.options if row else {}
        if seen != mark_of(was):
            raise OutOfDate("Somebody changed the gates of this pool after you read them. Read them again.")
        kept = {key: dict(given) for key, given in options.items()}
        who = actor.get_username()
        fields = {"options": kept, "previous": was, "by": who, "at": now}
        row, _ = PoolGates.objects.update_or_create(pool=pool, defaults=fields)
        _record(pool, was, kept, actor=who, reason=reason, now=now)
    return row


def _record(pool: Pool, was: PoolOptions, to: PoolOptions, *, actor: str, reason: str, now: datetime) -> None:
    evidence = {"before": {"gates": gates_as_yaml(was)}, "after": {"gates": gates_as_yaml(to)}}
    AuditEntry.record(f"pool:{pool.pk}", verb="change-gates", actor=actor, reason=reason, evidence=evidence, now=now)


def _describe(pool: Pool, _: datetime) -> list[str]:
    row = gates_of(pool)
    return [f"Its gates of new plans are removed: {', '.join(row.options)}."] if row and row.options else []


def _end_gates(pool: Pool, actor: str, now: datetime) -> None:
    if (row := gates_of(pool)) and row.options:
        _record(pool, row.options, {}, actor=actor, reason=POOL_DELETED, now=now)
        row.delete()


GATES_OF_A_POOL = GoesWithPool(_describe, _end_gates)


def _default_gates(pool: Pool, options: PoolOptions) -> list[str]:
    usual = ClusterGates({pool.pk: options}).usual_of(pool.pk, gates_by_default(pool.cluster_id, pool.pk))
    return gates_as_yaml(usual).splitlines()


def _check(options: PoolOptions) -> None:
    """:raises BadPlan: with each gate that cannot be read, or that could never pass"""
    problems = []
    for key, given in options.items():
        try:
            gates = read_gates({key: given})
        except BadGate as refusal:
            problems.append((f"gates.{key}", str(refusal)))
        else:
            problems += [(f"gates.{key}", sentence) for sentence in never_met(gates)]
    if problems:
        raise BadPlan(*problems)
