"""A real API server to talk to over HTTP: the simulator in a process of its own, empty, or with the objects given."""

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]
MERGE = {"Content-Type": "application/merge-patch+json"}
# It speaks plain http: who signs for whom is asked of nobody, and reading that anew took most of the time of a request.
TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass(frozen=True)
class ApiServer:
    """What a test does to the cluster behind our back."""

    url: str
    kubeconfig: str
    context: str = "simulator"

    def create(self, path: str, document: dict[str, Any]) -> dict[str, Any]:
        return self._ask("POST", path, json=document)

    def change(self, path: str, patch: dict[str, Any]) -> dict[str, Any]:
        return self._ask("PATCH", path, content=json.dumps(patch), headers=MERGE)

    def delete(self, path: str) -> None:
        self._ask("DELETE", path)

    def get(self, path: str) -> dict[str, Any]:
        return self._ask("GET", path)

    def suffer(self, fault: str, **settings: Any) -> None:
        """outage, slow, errors or expire: the simulator's own ways."""
        self._ask("POST", f"/simulator/{fault}", json=settings)

    def recover(self) -> None:
        """Wait for the end of an outage, and lift what else was put on."""
        until = time.monotonic() + PATIENCE_S
        while not self._is_lifted():
            assert time.monotonic() < until, "the API server did not come back"
            time.sleep(0.1)

    def _is_lifted(self) -> bool:
        try:
            return httpx.delete(f"{self.url}/simulator/faults", timeout=PATIENCE_S, verify=TRUST).is_success
        except httpx.TransportError:
            return False

    def requests(self) -> list[dict[str, Any]]:
        found: Any = self._ask("GET", "/simulator/requests")
        return found["requests"] if isinstance(found, dict) else found

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        answer = httpx.request(method, f"{self.url}{path}", timeout=PATIENCE_S, verify=TRUST, **more)
        assert answer.status_code < 300, answer.text
        return answer.json()


@contextmanager
def an_api_server(folder: Path, *more: str) -> Iterator[ApiServer]:
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "simulator", "--fleet", "none", "--port", "0", "--kubeconfig-out", str(kubeconfig)]
    server = subprocess.Popen([*command, "--die-with-parent", *more], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        line = server.stdout.readline()
        yield ApiServer(json.loads(line)["url"], str(kubeconfig))
    finally:
        server.terminate()
        server.wait(timeout=PATIENCE_S)
