from collections.abc import Iterator

import pytest

from fleet import kube
from tests.fleet.api_server import ApiServer, an_api_server


@pytest.fixture(scope="package")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with an_api_server(tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture
def connection(api: ApiServer) -> Iterator[kube.Connection]:
    opened = kube.connect(api.kubeconfig, api.context)
    yield opened
    opened.close()
