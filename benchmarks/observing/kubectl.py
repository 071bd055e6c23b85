"""The same change in `kubectl get nodes -w`: what a person has without us."""

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.observing.api import Api
from demo.visitor import wait_until

LATEST_S = 10.0
OPEN_S = 60.0


def late_ms(kubectl: str, kubeconfig: Path, api: Api, names: list[str], *, changes: int) -> list[float]:
    late = []
    with watching(kubectl, kubeconfig) as seen:
        wait_until(lambda: _has_telemetry(api, names[0], seen), what="kubectl's watch", timeout_s=OPEN_S, every_s=0.5)
        for number in range(changes):
            name = names[number * 41 % len(names)]
            seen.pop(name, None)
            done = api.label(name, f"kubectl-{time.time_ns()}")
            heard = wait_until(lambda: seen.get(name), what="kubectl", timeout_s=LATEST_S, every_s=0.001)  # noqa: B023
            late.append(max(0.0, heard - done) * 1000)
            time.sleep(0.05)
    return late


def _has_telemetry(api: Api, name: str, seen: dict[str, float]) -> bool:
    api.label(name, f"kubectl-{time.time_ns()}")
    time.sleep(0.2)
    return name in seen


@contextmanager
def watching(kubectl: str, kubeconfig: Path) -> Iterator[dict[str, float]]:
    """When it last wrote a line about each node."""
    seen: dict[str, float] = {}
    command = [kubectl, "--kubeconfig", str(kubeconfig), "get", "nodes", "--watch-only", "--no-headers"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def read() -> None:
        for line in running.stdout or ():
            seen[line.split()[0]] = time.perf_counter()

    threading.Thread(target=read, daemon=True).start()
    try:
        yield seen
    finally:
        running.terminate()
        running.wait(timeout=5)
