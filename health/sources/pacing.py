"""What a look need not do each time: when it was last done for a cluster, by whichever process, in Redis."""

from datetime import datetime, timedelta
from typing import Any

from redis.exceptions import RedisError

from health.sources.frames import FramesAway, redis_client


def take_turn(cluster_id: int, what: str, *, every: timedelta, now: datetime) -> bool:
    """Whether it is due; then it counts as done. Two that ask at the same moment may both do it.

    :raises FramesAway
    """
    place = _place(cluster_id, what)
    try:
        said: Any = redis_client().get(place)
        if said is not None and 0 <= now.timestamp() - float(said) < every.total_seconds():
            return False
        redis_client().set(place, now.timestamp(), ex=every)
    except RedisError as error:
        raise FramesAway(str(error)) from error
    return True


def forget(cluster_id: int, what: str) -> None:
    """It is due again.

    :raises FramesAway
    """
    try:
        redis_client().delete(_place(cluster_id, what))
    except RedisError as error:
        raise FramesAway(str(error)) from error


def _place(cluster_id: int, what: str) -> str:
    return f"quarterdeck:turns:{cluster_id}:{what}"
