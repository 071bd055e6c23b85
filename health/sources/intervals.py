"""What a look need not do each time: when it was last done for a cluster, by whichever process, in Redis."""

from datetime import datetime, timedelta
from typing import Any

from redis.exceptions import RedisError

from health.sources.snapshots import FramesAway, redis_client


def take_turn(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> bool:
    """Whether it is due; then it counts as done. Two that ask at the same moment may both do it.

    :raises FramesAway
    """
    if not is_due(cluster_id, what, every=every, now=now):
        return False
    done(cluster_id, what, every=every, now=now)
    return True


def is_due(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> bool:
    """Whether nobody did it for as long as this.

    :raises FramesAway
    """
    try:
        said: Any = redis_client().get(_place(cluster_id, what))
    except RedisError as error:
        raise FramesAway(str(error)) from error
    return said is None or not 0 <= now.timestamp() - float(said) < every.total_seconds()


def done(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> None:
    """It is not due again before as long as this is over.

    :raises FramesAway
    """
    try:
        redis_client().set(_place(cluster_id, what), now.timestamp(), ex=every)
    except RedisError as error:
        raise FramesAway(str(error)) from error


def _place(cluster_id: int, what: str) -> str:
    return f"quarterdeck:turns:{cluster_id}:{what}"
