"""The actors against an API server that they know only by its kubeconfig."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.actors.http_cluster import HttpCluster
from simulator.actors.objects import is_true, labels
from simulator.kinds import CONTROLLER_REVISION, NODE, POD
from simulator.kubeconfig import write
from simulator.refusals import Refused
from tests.patience import PATIENCE_S
from tests.simulator.actors.stage import NEW


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[HttpCluster]:
    """A bare API server in one process, its actors in another."""
    kubeconfig = tmp_path_factory.mktemp("bare") / "kubeconfig"
    server = started("simulator", "--fleet", "none", "--kubeconfig-out", str(kubeconfig), "--die-with-parent")
    cast = started(
        "simulator.cast", "--kubeconfig", str(kubeconfig), "--seed", "small", "--nodes", "2", "--speed", "60"
    )
    yield HttpCluster.of_kubeconfig(str(kubeconfig))
    for process in (cast, server):
        process.terminate()
        assert process.wait(timeout=PATIENCE_S) == 0


def started(module: str, *options: str) -> subprocess.Popen:
    """Runs once its first line is out."""
    root = Path(__file__).parents[3]
    process = subprocess.Popen(
        [sys.executable, "-m", module, *options], cwd=root, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )
    assert process.stdout
    json.loads(process.stdout.readline())
    return process


def wait_until(is_true, *args) -> None:
    end = time.monotonic() + PATIENCE_S
    while not is_true(*args):
        assert time.monotonic() < end, "not in time"
        time.sleep(0.2)


def test_a_planted_fleet_is_settled(cluster):
    pods, _ = cluster.list(POD)

    waiting = [pod for pod in pods if not is_true(pod, "Ready")]

    assert len(cluster.list(NODE)[0]) == 4
    assert {pod["metadata"]["namespace"] for pod in waiting} == {"batch"}


def test_a_refusal_comes_in_the_servers_words(cluster):
    with pytest.raises(Refused) as refusal:
        cluster.get(NODE, "nowhere")

    assert refusal.value.status == 404
    assert refusal.value.message == 'nodes "nowhere" not found'


def test_what_is_sent_is_spelled_as_gos_encoder_does(tmp_path):
    """kube-apiserver 1.34 refused a revision's new number, `data: field is immutable`, for the && of a probe."""
    bodies: list[bytes] = []

    class Server(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(201)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_args: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Server) as server, ThreadPoolExecutor() as pool:
        answering = pool.submit(server.handle_request)
        kubeconfig = tmp_path / "kubeconfig"
        write(kubeconfig, f"http://127.0.0.1:{server.server_port}", {"a": "token"}, None)
        probe = {"data": {"command": "a && b > c < d", "word": "é"}}
        HttpCluster.of_kubeconfig(str(kubeconfig)).create(CONTROLLER_REVISION, probe, "default")
        answering.result()

    assert rb"a \u0026\u0026 b \u003e c \u003c d" in bodies[0]
    assert json.loads(bodies[0])["data"] == probe["data"]


def test_a_driver_upgrade_completes(cluster):
    cluster.patch(NVIDIA_DRIVER, "h100", {"spec": {"version": NEW}})

    def is_done() -> bool:
        has = labels(cluster.get(NODE, "gpu-h100-001"))
        version = has.get("nvidia.com/cuda.driver-version.full")
        return (has[keys.STATE], version) == ("upgrade-done", NEW)

    wait_until(is_done)
