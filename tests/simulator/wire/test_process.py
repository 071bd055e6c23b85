"""`python -m simulator` as others start it: one line when ready, the log, the faults, a quick end."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.patience import PATIENCE_S
from tests.simulator.wire.waiting import until


@dataclass(frozen=True, slots=True)
class Started:
    process: subprocess.Popen[str]
    url: str
    log: Path

    def get(self, path: str, **wishes: Any) -> httpx.Response:
        return httpx.get(self.url + path, timeout=PATIENCE_S, **wishes)

    def strike(self, fault: str, **settings: Any) -> httpx.Response:
        return httpx.post(f"{self.url}/simulator/{fault}", json=settings, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    log = tmp_path_factory.mktemp("simulator") / "requests.jsonl"
    words = [sys.executable, "-m", "simulator", "--fleet", "none", "--request-log", str(log), "--die-with-parent"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = json.loads(process.stdout.readline())
    assert Path(said["kubeconfig"]).stat().st_mode & 0o077 == 0
    yield Started(process, said["url"], log)
    _stop(process)
    assert not Path(said["kubeconfig"]).parent.exists(), "it left its folder behind"


def _stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 0


@pytest.fixture(autouse=True)
def calm(started: Started) -> Iterator[None]:
    yield
    httpx.delete(f"{started.url}/simulator/faults", timeout=PATIENCE_S)


def test_the_log_tells_who_asked_what_and_with_which_body(started: Started) -> None:
    before = started.get("/simulator/requests").json()
    body = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "gpu-1"}}

    httpx.post(f"{started.url}/api/v1/nodes", json=body, headers={"user-agent": "quarterdeck/7"}, timeout=PATIENCE_S)
    started.get("/api/v1/nodes?limit=3")
    seen = started.get("/simulator/requests", params={"since": before[-1]["n"] if before else 0}).json()

    assert [(entry["verb"], entry["method"], entry["path"], entry["code"]) for entry in seen] == [
        ("create", "POST", "/api/v1/nodes", 201),
        ("list", "GET", "/api/v1/nodes", 200),
    ]
    assert (seen[0]["body"], seen[0]["user_agent"]) == (body, "quarterdeck/7")
    assert (seen[1]["query"], "body" in seen[1]) == ("limit=3", False)
    assert [json.loads(line)["n"] for line in started.log.read_text().splitlines()][-2:] == [e["n"] for e in seen]


def test_errors_strike_the_share_that_was_asked_for(started: Started) -> None:
    started.strike("errors", code=500, share=1.0, path="/nodes")

    broken, whole = started.get("/api/v1/nodes"), started.get("/api/v1/pods")

    assert (broken.status_code, broken.json()["kind"], whole.status_code) == (500, "Status", 200)


def test_throttling_says_when_to_come_back(started: Started) -> None:
    started.strike("errors", code=429)

    answer = started.get("/api/v1/nodes")

    assert (answer.status_code, answer.headers["retry-after"], answer.json()["reason"]) == (429, "1", "TooManyRequests")


def test_a_slow_server_takes_its_time(started: Started) -> None:
    started.strike("slow", delay_s=0.3)
    began = time.monotonic()

    started.get("/api/v1/nodes")

    assert time.monotonic() - began >= 0.3


def test_an_outage_refuses_and_drops_and_then_is_over(started: Started) -> None:
    with httpx.stream("GET", f"{started.url}/api/v1/nodes?watch=true", timeout=PATIENCE_S) as watching:
        started.strike("outage", seconds=5)
        with pytest.raises(httpx.HTTPError):
            list(watching.iter_lines())
    with pytest.raises(httpx.ConnectError):
        started.get("/api/v1/nodes")

    until(lambda: _answers(started))


def _answers(started: Started) -> bool:
    try:
        return started.get("/api/v1/nodes").status_code == 200
    except httpx.HTTPError:
        return False


def test_expiry_makes_watches_begin_again(started: Started) -> None:
    version = started.get("/api/v1/nodes").json()["metadata"]["resourceVersion"]

    started.strike("expire")

    assert started.get(f"/api/v1/nodes?watch=1&resourceVersion={version}").status_code == 410


def test_a_fault_that_nobody_wrote_is_refused(started: Started) -> None:
    answer = started.strike("faults", key="earthquake")

    assert (answer.status_code, "no fault is called 'earthquake'" in answer.json()["error"]) == (400, True)


def test_faults_are_listed_and_taken_back(started: Started) -> None:
    listed = started.strike("faults", key="slow_api", delay_s=0.01).json()
    taken = httpx.delete(f"{started.url}/simulator/faults?key=slow_api", timeout=PATIENCE_S).json()

    assert listed == [{"key": "slow_api", "delay_s": 0.01, "path": ""}]
    assert taken == []


def test_an_unknown_path_is_a_status(started: Started) -> None:
    answer = started.get("/apis/nowhere.example/v1/things")

    assert (answer.status_code, answer.json()["reason"]) == (404, "NotFound")
    assert answer.json()["message"] == "the server could not find the requested resource"


def test_head_answers_without_a_body(started: Started) -> None:
    answer = httpx.head(f"{started.url}/api/v1/nodes", timeout=PATIENCE_S)

    assert (answer.status_code, answer.content) == (200, b"")


def test_health_needs_no_token(started: Started) -> None:
    assert [started.get(path).text for path in ("/healthz", "/livez", "/readyz")] == ["ok"] * 3


def test_it_stops_quickly_while_somebody_watches() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "simulator", "--fleet", "none"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    url = json.loads(process.stdout.readline())["url"]
    with httpx.stream("GET", f"{url}/api/v1/nodes?watch=true", timeout=PATIENCE_S):
        _stop(process)


def test_a_port_that_somebody_has_is_named(started: Started) -> None:
    port = started.url.rpartition(":")[2]

    done = subprocess.run(
        [sys.executable, "-m", "simulator", "--fleet", "none", "--port", port],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )

    assert done.returncode != 0
    assert "Address already in use" in done.stderr
    assert "Traceback" not in done.stderr
