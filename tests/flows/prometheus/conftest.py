"""Simulated clusters whose exporters a real Prometheus scrapes, as the demo has it beside itself: fixtures."""

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
from tests.health.conftest import _redis, redis  # noqa: F401 (fixtures)
from tests.patience import PATIENCE_S

QUICK = Scraping(interval_s=1, timeout_s=1)
PASSWORD = "outsider"
BCRYPTED = "$2b$04$abcdefghijklmnopqrstuu2GLCTIzEl5j7mshnl.AUxtjHOObrTF."


@dataclass
class Served:
    """A Prometheus, and what it says."""

    url: str
    child: tied.Child
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
    """Whether it answers; one that wants a password does, and one that wants TLS."""
    try:
        return httpx.get(f"{url}/-/ready", timeout=PATIENCE_S).status_code in {200, 400, 401}
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
        return Served(url, child)

    yield start
    for child in children:
        child.stop()
