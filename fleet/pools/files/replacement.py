"""The import of a pool file, completely or not at all."""

from datetime import datetime
from typing import Any

from django.db import transaction

from fleet.models import Pool
from fleet.pools.changes import PoolInUse, emptied, settle, write_change, write_deletion, write_new
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
        raise OutOfStep(
            "The changes differ from the preview that you read. Nothing was imported. Read the preview again."
        )
    if comparison.obstacles:
        raise PoolInUse(" ".join(comparison.obstacles))
    told: dict[str, Any] = {"actor": actor, "now": now}
    removed = [change.pool for change in comparison.changes if change.what is FileChangeKind.REMOVED and change.pool]
    sorted_anew = list[Pool]()
    with emptied(removed, **told), transaction.atomic():
        # Locks all pools before anything else, to avoid deadlocks with changes of single pools.
        list(Pool.objects.select_for_update(no_key=True).filter(cluster=comparison.cluster).order_by("pk"))
        for change in comparison.changes:
            if change.what is FileChangeKind.CREATED:
                sorted_anew.append(write_new(cluster=comparison.cluster, **told, **change.fields))
            elif change.what is FileChangeKind.CHANGED and change.pool:
                sorted_anew.append(write_change(change.pool, **told, **change.fields))
            elif change.what is FileChangeKind.REMOVED and change.pool:
                write_deletion(change.pool, **told)
    settle(comparison.cluster, sorted_anew, **told)
