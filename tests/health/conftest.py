import os
from collections import OrderedDict
from collections.abc import Iterator

import pytest
from redis import Redis

from demo import valkey
from health.sources import source_round


@pytest.fixture(scope="session")
def _redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("redis")
    child, url = valkey.start(folder / "valkey", log=folder / "log", env=os.environ)
    yield url
    child.stop()


@pytest.fixture
def redis(_redis: str, settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """A real one, which a test shares with the others of its process, and finds empty.

    Nor what a worker remembers of a source: a row of the same key may have been another test's.
    """
    Redis.from_url(_redis).flushall()
    settings.REDIS_URL = _redis
    monkeypatch.setattr(source_round, "_known", OrderedDict())
    return _redis
