"""The import of a pool file, completely or not at all."""

from datetime import datetime

from django.db import transaction

from fleet.models import Pool
from fleet.pools.changes import PoolInUse, change_pool, create_pool, delete_pool
from fleet.pools.files.comparison import FileChangeKind, FileComparison


class OutOfStep(Exception):
    """The effect of the file changed since it was shown."""


def take_over(comparison: FileComparison, *, actor: str, now: datetime, expected: str = "") -> None:
    """Imports a file. `expected` is the fingerprint shown to the actor; blank: none was shown.

    :raises OutOfStep: when the effect changed
    :raises PoolInUse: when a pool to delete has a history
    :raises PoolTaken: when somebody created one of the pools meanwhile
    :raises PoolGone: when somebody deleted one of the pools meanwhile
    :raises ProductionAsks: when the approval rules contradict
    """
    if expected and expected != comparison.fingerprint:
        raise OutOfStep("Since you looked, other pools or nodes would change. Look again: nothing was taken over.")
    if comparison.obstacles:
        raise PoolInUse(" ".join(comparison.obstacles))
    with transaction.atomic():
        # Locks all pools before anything else, to avoid deadlocks with changes of single pools.
        list(Pool.objects.select_for_update(no_key=True).filter(cluster=comparison.cluster).order_by("pk"))
        for change in comparison.changes:
            if change.what is FileChangeKind.CREATED:
                create_pool(cluster=comparison.cluster, actor=actor, now=now, **change.fields)
            elif change.what is FileChangeKind.CHANGED and change.pool:
                change_pool(change.pool, actor=actor, now=now, **change.fields)
            elif change.what is FileChangeKind.REMOVED and change.pool:
                delete_pool(change.pool, actor=actor, now=now)
