"""An exporter behind the pod proxy, over HTTP, while it is silent."""

import time
from collections.abc import Callable

import httpx
import pytest

from simulator.run import Simulation
from tests.patience import PATIENCE_S

NODE = "gpu-h100-001"


@pytest.fixture(scope="module")
def fleet(start: Callable[..., Simulation]) -> Simulation:
    return start("--fleet", "small", "--nodes", "2")


def path(fleet: Simulation) -> str:
    where = {"labelSelector": "app=nvidia-dcgm-exporter", "fieldSelector": f"spec.nodeName={NODE}"}
    (pod,) = httpx.get(f"{fleet.url}/api/v1/pods", params=where, timeout=PATIENCE_S).json()["items"]
    return f"{fleet.url}/api/v1/namespaces/gpu-operator/pods/{pod['metadata']['name']}:9400/proxy/metrics"


def strike(fleet: Simulation, key: str, **settings: object) -> None:
    body = {"key": key, "node": NODE, **settings}
    httpx.post(f"{fleet.url}/simulator/faults", json=body, timeout=PATIENCE_S).raise_for_status()


def end(fleet: Simulation, **asked: str) -> list[dict[str, object]]:
    left: list[dict[str, object]] = httpx.delete(
        f"{fleet.url}/simulator/faults", params=asked, timeout=PATIENCE_S
    ).json()
    return left


def test_one_that_hangs_takes_the_request_and_says_nothing_until_it_is_well(fleet: Simulation) -> None:
    strike(fleet, "silent_exporter", how="hangs")

    with pytest.raises(httpx.ReadTimeout):
        httpx.get(path(fleet), timeout=1)
    end(fleet, key="silent_exporter", node=NODE)

    assert httpx.get(path(fleet), timeout=PATIENCE_S).status_code == 200


def test_one_that_drips_begins_at_once_and_does_not_end(fleet: Simulation) -> None:
    strike(fleet, "silent_exporter", how="drip")

    began, got = time.monotonic(), b""
    with httpx.stream("GET", path(fleet), timeout=PATIENCE_S) as answer:
        for piece in answer.iter_raw():
            got += piece
            if len(got) >= 2:
                break
    end(fleet)

    assert answer.status_code == 200
    assert got == b"# "
    assert time.monotonic() - began >= 1


def test_one_that_refuses_is_as_a_pod_without_a_port(fleet: Simulation) -> None:
    strike(fleet, "silent_exporter", how="refuses")

    answer = httpx.get(path(fleet), timeout=PATIENCE_S)
    end(fleet)

    assert answer.status_code == 503
    assert "connection refused" in answer.json()["message"]


def test_one_fault_of_several_is_ended(fleet: Simulation) -> None:
    strike(fleet, "hot_gpu", gpu=1)
    strike(fleet, "hot_gpu", gpu=2)

    left = end(fleet, key="hot_gpu", node=NODE, gpu="1")

    assert [each["gpu"] for each in left] == [2]
    assert end(fleet) == []
