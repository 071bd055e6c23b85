"""The actors against an API server that they know only by its kubeconfig."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from simulator.actors.gpu_operator import keys
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.actors.http_cluster import HttpCluster
from simulator.actors.objects import is_true, labels
from simulator.kinds import NODE, POD
from simulator.refusals import Refused
from tests.simulator.actors.stage import NEW

PATIENCE_S = 40


@pytest.fixture(scope="module")
def cluster(tmp_path_factory) -> Iterator[HttpCluster]:
    """A bare API server in one process, its actors in another."""
    kubeconfig = tmp_path_factory.mktemp("bare") / "kubeconfig"
    server = started("simulator", "--fleet", "none", "--kubeconfig-out", str(kubeconfig), "--die-with-parent")
    cast = started(
        "simulator.actors", "--kubeconfig", str(kubeconfig), "--seed", "small", "--nodes", "2", "--speed", "60"
    )
    yield HttpCluster.of_kubeconfig(str(kubeconfig))
    for process in (cast, server):
        process.terminate()
        assert process.wait(timeout=10) == 0


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


def test_a_driver_upgrade_completes(cluster):
    cluster.patch(NVIDIA_DRIVER, "h100", {"spec": {"version": NEW}})

    def is_done() -> bool:
        has = labels(cluster.get(NODE, "gpu-h100-001"))
        version = has.get("nvidia.com/cuda.driver-version.full")
        return (has[keys.STATE], version) == ("upgrade-done", NEW)

    wait_until(is_done)
