from pathlib import Path

import pytest

from tests.health.conftest import _redis, redis

__all__ = ["_redis", "redis"]
FOLDER = Path(__file__).parent
FAST = {"test_crash_cases.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of benches run in the nightly run, but for a fast one of the invariants."""
    for item in items:
        if FOLDER in item.path.parents and item.path.name not in FAST:
            item.add_marker(pytest.mark.nightly)
