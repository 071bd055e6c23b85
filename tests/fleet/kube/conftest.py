from collections.abc import Iterator

import pytest

from fleet import kube
from tests.fleet.api_server import ApiServer


@pytest.fixture
def connection(api: ApiServer) -> Iterator[kube.Connection]:
    opened = kube.connect(api.kubeconfig, api.context)
    yield opened
    opened.close()
