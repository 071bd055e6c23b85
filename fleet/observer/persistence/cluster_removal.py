"""Removal of the old rows of a rebuilt cluster, in short transactions; its timeline stays.

A cluster without bookmarks has foreign rows. Bookmarks are created after all are deleted, so that another worker can
continue after a crash.
"""

from collections.abc import Callable
from datetime import datetime
from threading import Event
from typing import Any

from django.db import transaction

from fleet.allocation.counters import count_written_nodes
from fleet.models import ClusterEvent, ExporterReading, Node, Observer
from fleet.observer.mirror.kinds import KINDS
from fleet.observer.persistence import placements

AT_ONCE = 50  # a node is deleted with its GPUs and pools: within 100 ms on a busy core
BREATH_S = 0.01  # SQLite gives no writer a turn


def forget(cluster_id: int, *, epoch: int, stop: Event, clock: Callable[[], datetime]) -> bool:
    """Deletes the old rows. False: stopped before the end.

    :raises LostLease: when another worker took the lease
    """
    models = dict.fromkeys(
        [ClusterEvent, ExporterReading, *(part.model for kind in KINDS.values() for part in kind.parts)]
    )
    for model in sorted(models, key=lambda model: model is Node):  # rows that reference nodes first
        while _delete_some(model, cluster_id, epoch=epoch, now=clock()):
            if stop.wait(BREATH_S):
                return False
    placements.end_all_placements(cluster_id, epoch=epoch, clock=clock)
    return True


def _delete_some(model: Any, cluster_id: int, *, epoch: int, now: datetime) -> bool:
    some = list(model.objects.filter(cluster_id=cluster_id).values_list("pk", flat=True)[:AT_ONCE])
    if some:
        with transaction.atomic():
            Observer.keep(cluster_id, epoch=epoch, now=now, flushed=False)
            with count_written_nodes(cluster_id, some if model is Node else ()):
                model.objects.filter(pk__in=some).delete()
    return bool(some)
