"""A real Prometheus scrapes the exporters of simulated clusters, as the demo has it beside itself."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo import prometheus, tied
from demo.prometheus import Scraped, Scraping
from demo.settings import ROOT
from demo.visitor import wait_until
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.prometheus
QUICK = Scraping(interval_s=1, timeout_s=1)
PASSWORD = "outsider"
BCRYPTED = "$2b$04$abcdefghijklmnopqrstuu2GLCTIzEl5j7mshnl.AUxtjHOObrTF."


@dataclass
class Served:
    """A Prometheus, and what it says."""

    url: str
    auth: tuple[str, str] | None = None

    def ask(self, query: str) -> list[dict[str, Any]]:
        answer = httpx.get(f"{self.url}/api/v1/query", params={"query": query}, auth=self.auth, timeout=PATIENCE_S)
        found: list[dict[str, Any]] = answer.raise_for_status().json()["data"]["result"]
        return found

    def wait_for(self, query: str, count: int) -> list[dict[str, Any]]:
        wait_until(lambda: len(self.ask(query)) == count, what=f"{count} of {query}", timeout_s=PATIENCE_S)
        return self.ask(query)


@pytest.fixture(scope="module")
def east(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    yield from simulated(tmp_path_factory.mktemp("east"), "--fleet", "small", "--nodes", "2")


@pytest.fixture(scope="module")
def west(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Over TLS, with an authority of its own, and nobody gets in without a token."""
    mix = ("--fleet", "mixed", "--nodes", "2", "--mix", "mig-mixed=1,time-slicing=1", "--authorization", "rbac")
    yield from simulated(tmp_path_factory.mktemp("west"), *mix)


def simulated(folder: Path, *words: str) -> Iterator[dict[str, str]]:
    command = [sys.executable, "-m", "simulator", "--die-with-parent", "--kubeconfig-out", str(folder / "kubeconfig")]
    process = subprocess.Popen([*command, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield json.loads(process.stdout.readline())
    process.terminate()
    process.wait(PATIENCE_S)


def is_ready(url: str) -> bool:
    """Whether it answers; one that wants a password does."""
    try:
        return httpx.get(f"{url}/-/ready", timeout=PATIENCE_S).status_code in {200, 401}
    except httpx.TransportError:
        return False


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Any]:
    children: list[tied.Child] = []

    def start(*scraped: Scraped, how: Scraping = QUICK, web_config: Path | None = None) -> Served:
        child, url = prometheus.start(
            tmp_path / "prometheus", scraped, log=tmp_path / "log", how=how, web_config=web_config
        )
        children.append(child)
        wait_until(lambda: child.has_ended or is_ready(url), what="the Prometheus", timeout_s=PATIENCE_S)
        assert not child.has_ended, child.last_words()
        return Served(url)

    yield start
    for child in children:
        child.stop()


def test_a_series_names_its_gpu_its_exporter_and_who_holds_it(served: Any, east: dict[str, str]) -> None:
    server = served(Scraped("east", Path(east["kubeconfig"])))

    found = server.wait_for("DCGM_FI_DEV_GPU_TEMP", 16)

    (one,) = [each["metric"] for each in found if each["metric"]["gpu"] == "0" and "h100" in each["metric"]["hostname"]]
    assert one["exported_namespace"] == "pretraining"
    assert one["exported_pod"].startswith("llm-pretrain-")
    assert one["exported_container"] == "main"
    assert (one["namespace"], one["container"], one["job"]) == (
        "gpu-operator",
        "nvidia-dcgm-exporter",
        "nvidia-dcgm-exporter",
    )
    assert one["pod"].startswith("nvidia-dcgm-exporter-")
    assert "cluster" not in one


def test_where_their_labels_are_honoured_theirs_are_the_pods(served: Any, east: dict[str, str]) -> None:
    how = Scraping(interval_s=1, timeout_s=1, honor_labels=True)
    server = served(Scraped("east", Path(east["kubeconfig"])), how=how)

    found = server.wait_for("DCGM_FI_DEV_GPU_TEMP", 16)

    held = [each["metric"] for each in found if "h100" in each["metric"]["hostname"]]
    assert all(each["namespace"] == "pretraining" for each in held)
    assert not any("exported_pod" in each for each in held)


def test_one_server_has_several_clusters_by_a_label(served: Any, east: dict[str, str], west: dict[str, str]) -> None:
    how = Scraping(interval_s=1, timeout_s=1, names_clusters=True)
    scraped = (Scraped("east", Path(east["kubeconfig"])), Scraped("west", Path(west["kubeconfig"])))
    server = served(*scraped, how=how)

    server.wait_for('DCGM_FI_DEV_GPU_TEMP{cluster="east"}', 16)
    sliced = server.wait_for('DCGM_FI_DEV_FB_USED{cluster="west",GPU_I_ID!=""}', 32)

    assert {each["metric"]["GPU_I_PROFILE"] for each in sliced} == {"1g.10gb", "2g.20gb", "3g.40gb"}


def test_a_fault_is_seen_by_who_asks_prometheus(served: Any, east: dict[str, str]) -> None:
    server = served(Scraped("east", Path(east["kubeconfig"])))
    server.wait_for("DCGM_FI_DEV_XID_ERRORS", 16)
    fault = {"key": "xid", "node": "gpu-h100-001", "gpu": 3, "code": 48}

    httpx.post(f"{east['url']}/simulator/faults", json=fault, timeout=PATIENCE_S).raise_for_status()
    (found,) = server.wait_for("DCGM_FI_DEV_XID_ERRORS > 0", 1)
    httpx.post(
        f"{east['url']}/simulator/faults",
        json={"key": "silent_exporter", "node": "gpu-h100-001", "how": "html"},
        timeout=PATIENCE_S,
    ).raise_for_status()
    server.wait_for("up == 0", 1)
    httpx.delete(f"{east['url']}/simulator/faults", timeout=PATIENCE_S)

    assert (found["metric"]["gpu"], found["metric"]["err_code"], found["value"][1]) == ("3", "48", "48")
    server.wait_for("up == 1", 2)


def test_a_server_behind_a_password_lets_nobody_in_without(served: Any, east: dict[str, str], tmp_path: Path) -> None:
    config = tmp_path / "web.yml"
    config.write_text(json.dumps({"basic_auth_users": {"quarterdeck": BCRYPTED}}))

    server = served(Scraped("east", Path(east["kubeconfig"])), web_config=config)
    refused = httpx.get(f"{server.url}/api/v1/query", params={"query": "up"}, timeout=PATIENCE_S)
    server.auth = ("quarterdeck", PASSWORD)

    assert refused.status_code == 401
    assert len(server.wait_for("up", 2)) == 2
