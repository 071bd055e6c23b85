from collections.abc import Iterator

import pytest

from tests.fleet.api_server import ApiServer, an_api_server


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An empty cluster, one for the whole run: leave nothing behind."""
    with an_api_server(tmp_path_factory.mktemp("api")) as server:
        yield server
