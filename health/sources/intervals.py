"""Work that is not due in every round: the last time for each cluster, shared by all processes in Redis."""

from datetime import UTC, datetime, timedelta
from typing import Any

from redis.exceptions import RedisError

from health.sources.snapshots import SnapshotsUnavailable, redis_client

KEPT = timedelta(days=1)


def take_due_turn(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> bool:
    """Returns whether the work is due, and marks it as done. Two simultaneous callers may both do it.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    if not is_due(cluster_id, what, every=every, now=now):
        return False
    mark_done(cluster_id, what, every=every, now=now)
    return True


def is_due(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> bool:
    """Returns whether nobody did it within `every`.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    at = last_done_at(cluster_id, what)
    return at is None or not timedelta() <= now - at < every


def last_done_at(cluster_id: int, what: str) -> datetime | None:
    """Returns when it was last done; None if nobody did it within a day.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    try:
        said: Any = redis_client().get(_place(cluster_id, what))
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error
    return None if said is None else datetime.fromtimestamp(float(said), UTC)


def mark_done(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> None:
    """Marks it as done, so that it is not due again within `every`.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    try:
        redis_client().set(_place(cluster_id, what), now.timestamp(), ex=max(every, KEPT))
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error


def _place(cluster_id: int, what: str) -> str:
    return f"quarterdeck:turns:{cluster_id}:{what}"
