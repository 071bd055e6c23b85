from collections.abc import Iterator

import pytest

from kube import client
from tests.api_server import ApiServer


@pytest.fixture
def connection(api: ApiServer) -> Iterator[client.Connection]:
    opened = client.connect(api.kubeconfig, api.context)
    yield opened
    opened.close()
