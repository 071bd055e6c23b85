"""The turns of rules and sources that are not evaluated in every round: their facts cost much, or change rarely."""

from datetime import datetime, timedelta

import structlog

from fleet.models import Cluster
from health.sources.intervals import take_due_turn
from health.sources.snapshots import SnapshotsUnavailable

log = structlog.get_logger(__name__)


def is_turn_of(key: str, cluster: Cluster, *, every: timedelta, now: datetime) -> bool:
    """Returns whether this evaluation covers a rule or source. Without Redis it does not, and its findings stay."""
    try:
        return take_due_turn(cluster.pk, key, every=every, now=now)
    except SnapshotsUnavailable as error:
        log.warning("not evaluated: Redis is away", rule=key, cluster=cluster.name, reason=str(error))
        return False
