"""Clusters to evaluate without a notification: time has passed, or a notification was lost."""

from datetime import datetime, timedelta

from fleet.models import Cluster
from health.lifecycle import FindingState
from health.models import Finding
from health.sources import intervals
from health.sources.snapshots import SnapshotsUnavailable

EVERY = timedelta(seconds=30)
LOOK = "look"


def due(*, now: datetime) -> list[int]:
    """Returns the keys of clusters with a finding to confirm now, or without a recent evaluation."""
    confirming = Finding.objects.filter(state=FindingState.CONFIRMING, confirmed_at__lte=now)
    ripe = set(confirming.values_list("cluster", flat=True))
    clusters = Cluster.objects.values_list("pk", flat=True)
    return [pk for pk in clusters if pk in ripe or _is_overdue(pk, now=now)]


def record_evaluation(cluster_id: int, *, now: datetime) -> None:
    """Records the evaluation of a cluster.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    intervals.mark_done(cluster_id, LOOK, every=EVERY, now=now)


def last_evaluation(cluster_id: int) -> datetime | None:
    """Returns when the newest finished evaluation of a cluster began; None if it has none within a day.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    return intervals.last_done_at(cluster_id, LOOK)


def _is_overdue(cluster_id: int, *, now: datetime) -> bool:
    try:
        return intervals.is_due(cluster_id, LOOK, every=EVERY, now=now)
    except SnapshotsUnavailable:  # unknown; a second evaluation does no harm
        return True
