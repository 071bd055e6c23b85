"""Taking a file over: all of it, or nothing."""

from datetime import datetime

from django.db import transaction

from fleet.models import Pool
from fleet.pools.changes import PoolInUse, change_pool, create_pool, delete_pool
from fleet.pools.files.comparison import FileChangeKind, FileComparison


class OutOfStep(Exception):
    """Since it was shown, the file would do something else."""


def take_over(comparison: FileComparison, *, actor: str, now: datetime, expected: str = "") -> None:
    """`expected` is the fingerprint of what the actor saw; blank: they asked for no look before.

    :raises OutOfStep: when it would do something else by now
    :raises PoolInUse: when a pool that is to go has a history
    :raises PoolTaken: when somebody else made one of the pools in between; PoolGone: deleted one
    :raises ProductionAsks: when the cluster says “approval: none” by now, and a pool is production
    """
    if expected and expected != comparison.fingerprint:
        raise OutOfStep("Since you looked, other pools or nodes would change. Look again: nothing was taken over.")
    if comparison.obstacles:
        raise PoolInUse(" ".join(comparison.obstacles))
    with transaction.atomic():
        # All of them before anything else is locked: who changes one of them has it, and wants the rest.
        list(Pool.objects.select_for_update(no_key=True).filter(cluster=comparison.cluster).order_by("pk"))
        for change in comparison.changes:
            if change.what is FileChangeKind.CREATED:
                create_pool(cluster=comparison.cluster, actor=actor, now=now, **change.fields)
            elif change.what is FileChangeKind.CHANGED and change.pool:
                change_pool(change.pool, actor=actor, now=now, **change.fields)
            elif change.what is FileChangeKind.REMOVED and change.pool:
                delete_pool(change.pool, actor=actor, now=now)
