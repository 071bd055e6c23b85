"""A real Redis: turns are kept in it."""

from tests.health.conftest import _redis, redis

__all__ = ["_redis", "redis"]
