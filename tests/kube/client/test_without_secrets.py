"""An API server, a proxy before it or a pod behind it repeats the header that it was sent: Z39."""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from kube import client
from kube.client import connect
from kube.client.pod_proxy import metrics_of
from kube.client.single_requests import last_lines
from kube.resources import NODES

TOKEN = "eyJhbGciOi.J9-sesame_open"
SPELT = [TOKEN, base64.b64encode(TOKEN.encode()).decode(), TOKEN.replace(".", "%2E")]


@contextmanager
def repeating(folder: Path, write, *, status: int = 200) -> Iterator[client.Connection]:
    """A connection to a server that answers what `write` makes of the header it was sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            header = self.headers["Authorization"]
            token = header.removeprefix("Bearer ")
            coded = base64.b64encode(token.encode()).decode()
            self.send_response(status)
            self.end_headers()
            self.wfile.write(write(f"{header}; {coded}; {token.replace('.', '%2E')}").encode())

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    kubeconfig = {
        "clusters": [{"name": "a", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "a", "user": {"token": TOKEN}}],
        "contexts": [{"name": "one", "context": {"cluster": "a", "user": "a"}}],
    }
    (folder / "config").write_text(json.dumps(kubeconfig))
    connection = connect(str(folder / "config"), "one")
    try:
        yield connection
    finally:
        connection.close()
        server.shutdown()
        server.server_close()


def a_status(words: str) -> str:
    return json.dumps({"kind": "Status", "message": f"who is {words}?", "code": 403})


def an_event(words: str) -> str:
    return json.dumps({"type": "ERROR", "object": json.loads(a_status(words))}) + "\n"


def refusal(folder: Path) -> str:
    with repeating(folder, a_status, status=403) as connection, pytest.raises(client.Forbidden) as refused:
        connection.get("/api/v1/nodes")
    return f"{refused.value} {refused.value.in_full}"


def end_of_a_watch(folder: Path) -> str:
    with repeating(folder, an_event) as connection, pytest.raises(client.Forbidden) as refused:
        list(client.Watch(connection, NODES, "1", seconds=5))
    return f"{refused.value} {refused.value.in_full}"


def metrics(folder: Path) -> str:
    with repeating(folder, 'x{{said="{}"}} 1\n'.format) as connection:
        return metrics_of(connection, "gpu-operator", "exporter", 9400)


def log(folder: Path) -> str:
    with repeating(folder, "panic: {}\n".format) as connection:
        return "\n".join(last_lines(connection, "gpu-operator", "driver", "driver", crashed=False))


@pytest.mark.parametrize("taken_in", [refusal, end_of_a_watch, metrics, log])
def test_no_token_comes_back(tmp_path, taken_in):
    said = taken_in(tmp_path)

    assert "[redacted]" in said
    assert [spelt for spelt in SPELT if spelt in said] == []


def test_a_token_that_was_renewed_is_still_not_shown(tmp_path):
    with repeating(tmp_path, a_status, status=403) as connection:
        with pytest.raises(client.Forbidden):
            connection.get("/api/v1/nodes")
        connection._client.configuration.refresh_api_key_hook = None
        connection._client.configuration.api_key["BearerToken"] = "Bearer another-token"
        with pytest.raises(client.Forbidden):
            connection.get("/api/v1/nodes")

        assert connection.without_secrets(f"{TOKEN} another-token".encode()) == b"[redacted] [redacted]"


def test_of_basic_auth_neither_the_pair_nor_the_password_comes_back(tmp_path):
    pair = base64.b64encode(b"admin:sesame-open").decode()
    with repeating(tmp_path, a_status, status=403) as connection:
        connection._client.configuration.refresh_api_key_hook = None
        connection._client.configuration.api_key["BearerToken"] = f"Basic {pair}"
        with pytest.raises(client.Forbidden) as refused:
            connection.get("/api/v1/nodes")

        assert pair not in str(refused.value)
        assert connection.without_secrets(b"sesame-open") == b"[redacted]"
