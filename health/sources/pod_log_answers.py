"""The log lines that a person asked for, in Redis for two minutes. They are in no database and in no other log."""

from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

import msgspec
from redis.exceptions import RedisError

from health.sources.snapshots import SnapshotsUnavailable, redis_client

KEPT = timedelta(minutes=2)


@dataclass(frozen=True)
class PodLogAnswer:
    container: str  # blank: the only one of the pod
    asked_at: str  # ISO 8601
    lines: tuple[str, ...] | None = None  # None: a worker has not read them yet
    trouble: str = ""  # why there are none


DECODER = msgspec.json.Decoder(PodLogAnswer)


def save_answer(pod_uid: str, user_id: int, answer: PodLogAnswer) -> None:
    """:raises SnapshotsUnavailable: when Redis does not answer"""
    try:
        redis_client().set(_place(pod_uid, user_id), msgspec.json.encode(asdict(answer)), ex=KEPT)
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error


def answer_for(pod_uid: str, user_id: int) -> PodLogAnswer | None:
    """Returns what this person asked for; None if nothing, or two minutes ago.

    :raises SnapshotsUnavailable: when Redis does not answer
    """
    try:
        stored: Any = redis_client().get(_place(pod_uid, user_id))
    except RedisError as error:
        raise SnapshotsUnavailable(str(error)) from error
    return None if stored is None else DECODER.decode(stored)


def _place(pod_uid: str, user_id: int) -> str:
    return f"quarterdeck:pod-logs:{user_id}:{pod_uid}"
