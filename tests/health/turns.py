"""Turns that a test before has taken: they are kept in Redis, whatever becomes of the database."""

from health.sources import intervals
from health.sources.snapshots import redis_client


def give_back(cluster_id: int, what: str) -> None:
    redis_client().delete(intervals._place(cluster_id, what))
