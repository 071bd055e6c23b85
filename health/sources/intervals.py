"""Work that is not due in every round: the last time for each cluster, shared by all processes in Redis."""

from datetime import datetime, timedelta
from typing import Any

from redis.exceptions import RedisError

from health.sources.snapshots import SnapshotsUnavailable, redis_client


def take_turn(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> bool:
    """Returns whether the work is due, and marks it as done. Two simultaneous callers may both do it.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    if not is_due(cluster_id, what, every=every, now=now):
        return False
    done(cluster_id, what, every=every, now=now)
    return True


def is_due(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> bool:
    """Returns whether nobody did it within `every`.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    try:
        said: Any = redis_client().get(_place(cluster_id, what))
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error
    return said is None or not 0 <= now.timestamp() - float(said) < every.total_seconds()


def done(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> None:
    """Marks it as done, so that it is not due again within `every`.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    try:
        redis_client().set(_place(cluster_id, what), now.timestamp(), ex=every)
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error


def _place(cluster_id: int, what: str) -> str:
    return f"quarterdeck:turns:{cluster_id}:{what}"
