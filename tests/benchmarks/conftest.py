from pathlib import Path

import pytest

from tests.health.conftest import _redis, redis

__all__ = ["_redis", "redis"]
FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of benches run in the nightly run."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.nightly)
