"""What a pod answers through the API server, within limits of size and time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import yaml

from kube import client
from kube.client import pod_proxy
from kube.client.pod_proxy import metrics_of

PATH = "/api/v1/namespaces/gpu-operator/pods/http:exporter:9400/proxy/metrics"


@contextmanager
def answering(
    folder, *pieces: bytes, pause_s: float = 0.0, announced: int | None = None
) -> Iterator[tuple[client.Connection, list[str]]]:
    """An API server that answers in these pieces, and what it was asked for."""
    asked: list[str] = []
    is_over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            if announced is not None:
                self.send_header("Content-Length", str(announced))
            self.end_headers()
            for piece in pieces:
                self.wfile.write(piece)
                is_over.wait(pause_s)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    connection = client.connect(a_kubeconfig(folder, f"http://127.0.0.1:{server.server_port}"), "one")
    try:
        yield connection, asked
    finally:
        is_over.set()
        connection.close()
        server.shutdown()
        server.server_close()


def a_kubeconfig(folder, address: str) -> str:
    file = folder / "kubeconfig"
    clusters = [{"name": "one", "cluster": {"server": address}}]
    contexts = [{"name": "one", "context": {"cluster": "one", "user": "one"}}]
    users = [{"name": "one", "user": {"token": "t"}}]
    file.write_text(yaml.safe_dump({"clusters": clusters, "contexts": contexts, "users": users}))
    return str(file)


def test_metrics_are_asked_for_at_the_pods_port(tmp_path):
    with answering(tmp_path, b"up 1\n", b"caf\xe9 2\n") as (connection, asked):
        text = metrics_of(connection, "gpu-operator", "exporter", 9400)

    assert text == "up 1\ncaf\ufffd 2\n"
    assert asked == [PATH]


def test_an_answer_that_is_too_large_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(pod_proxy, "AT_MOST_BYTES", 2**20)
    with (
        answering(tmp_path, *[b"x" * 2**20] * 3) as (connection, _),
        pytest.raises(client.Unreadable, match="more than 1 MiB as one answer"),
    ):
        metrics_of(connection, "gpu-operator", "exporter", 9400)


def test_an_answer_that_trickles_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(pod_proxy, "WHOLE_S", 0.3)
    with (
        answering(tmp_path, *[b"x\n"] * 20, pause_s=0.1) as (connection, _),
        pytest.raises(client.Unreachable, match="for one answer"),
    ):
        metrics_of(connection, "gpu-operator", "exporter", 9400)


def test_an_exporter_that_says_nothing_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(pod_proxy, "READ_S", 0.2)
    with (
        answering(tmp_path, b"", b"", pause_s=5.0) as (connection, _),
        pytest.raises(client.Unreachable, match="did not answer in time"),
    ):
        metrics_of(connection, "gpu-operator", "exporter", 9400)


def test_an_answer_that_breaks_off_is_none(tmp_path):
    """Half of a text is read as a whole one: `61` is `6` where it ends."""
    with (
        answering(tmp_path, b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 6', announced=4000) as (connection, _),
        pytest.raises(client.Unreachable, match="closed the connection"),
    ):
        metrics_of(connection, "gpu-operator", "exporter", 9400)
