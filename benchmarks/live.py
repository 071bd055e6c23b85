"""How soon a change in a cluster is in a browser: the whole stack, real sockets, `kubectl get -w` beside it.

bin/bench live [--nodes N] [--changes N] [--clients N] [--rate CHANGES_PER_S] [--storm-s S]
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from benchmarks.figures import Figures, percentile
from demo.parts import Fleet
from demo.stack import PASSWORD, Stack
from demo.visitor import Visitor, wait_until

MERGE = {"Content-Type": "application/merge-patch+json"}
LATEST_S = 10.0


def main() -> None:
    asked = arguments()
    figures = Figures("live", {"nodes": asked.nodes, "seed": asked.seed})
    fleet = Fleet(nodes=asked.nodes, seed=asked.seed, speed=1.0)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder, Stack(Path(folder), fleet) as stack:
        measure(figures, stack, asked)
    figures.end()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench live")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--storm-s", type=float, default=5.0)
    return parser.parse_args()


def measure(figures: Figures, stack: Stack, asked: argparse.Namespace) -> None:
    viewer = Visitor(stack.url, "viewer").sign_in(PASSWORD)
    wait_until(lambda: len(viewer.all("/api/v1/nodes")) >= asked.nodes, what="the first list", timeout_s=600)
    ids = {node["name"]: node["id"] for node in viewer.all("/api/v1/nodes")}
    with httpx.Client(base_url=stack.simulator_url) as api, viewer.listening("/live/?topics=fleet") as socket:
        ear = Ear(socket)
        alone = [one_change(api, ear, ids, number) for number in range(asked.changes)]
        figures.at_most("change_to_socket_p50_ms", percentile(alone, 0.5), 60, "ms")
        figures.at_most("change_to_socket_p99_ms", percentile(alone, 0.99), 250, "ms")
        beside_kubectl(figures, stack, api, list(ids))
        with ExitStack() as crowd:
            for _ in range(asked.clients):
                Ear(crowd.enter_context(viewer.listening("/live/?topics=fleet")))
            late = storm(api, ear, ids, rate=asked.rate, for_s=asked.storm_s)
        figures.at_most("change_to_socket_in_a_storm_p99_ms", percentile(late, 0.99), 500, "ms")


class Ear:
    """Reads a socket as a browser does, and notes when each node was last named."""

    def __init__(self, socket: ClientConnection) -> None:
        self.named_at: dict[int, float] = {}
        self._socket = socket
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            for message in self._socket:
                now = time.perf_counter()
                for node_id, _ in json.loads(message).get("nodes", []):
                    self.named_at[node_id] = now
        except ConnectionClosed:
            return  # the bench is over


def label(api: httpx.Client, name: str, value: str) -> float:
    """When the API server had it."""
    patch = {"metadata": {"labels": {"bench": value}}}
    api.patch(f"/api/v1/nodes/{name}", content=json.dumps(patch), headers=MERGE).raise_for_status()
    return time.perf_counter()


def one_change(api: httpx.Client, ear: Ear, ids: dict[str, int], number: int) -> float:
    """Milliseconds from the API server's answer to our message, with nothing else going on."""
    name = list(ids)[number % len(ids)]
    sent = time.perf_counter()
    at = label(api, name, f"alone-{number}")
    heard = wait_until(
        lambda: ear.named_at.get(ids[name], 0) > sent and ear.named_at[ids[name]],
        what=f"the change of {name}",
        timeout_s=LATEST_S,
        every_s=0.001,
    )
    time.sleep(0.4)  # past the pause between two flushes
    return max(0.0, heard - at) * 1000


def storm(api: httpx.Client, ear: Ear, ids: dict[str, int], *, rate: float, for_s: float) -> list[float]:
    """Many changes a second: how late each node's newest change is named."""
    late = []
    names = list(ids)
    until = time.perf_counter() + for_s
    number = 0
    waiting: dict[int, float] = {}
    while time.perf_counter() < until or waiting:
        if time.perf_counter() < until:
            name = names[number % len(names)]
            node_id = ids[name]
            at = label(api, name, f"storm-{number}")
            waiting.setdefault(node_id, at)
            number += 1
        for node_id, at in list(waiting.items()):
            if ear.named_at.get(node_id, 0) > at:
                late.append((ear.named_at[node_id] - waiting.pop(node_id)) * 1000)
            elif time.perf_counter() - at > LATEST_S:
                raise TimeoutError("a change was never heard of")
        time.sleep(1 / rate)
    return late


def beside_kubectl(figures: Figures, stack: Stack, api: httpx.Client, names: list[str]) -> None:
    """The same change in `kubectl get -w`: what a person has without us."""
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        figures.lacks("kubectl_watch_p50_ms", "kubectl is not on the PATH")
        return
    late = []
    with watching(kubectl, stack.kubeconfig) as seen:
        for number in range(10):
            name = names[number % len(names)]
            at = label(api, name, f"kubectl-{number}")
            wait_until(lambda: seen.get(name, 0) > 0, what="kubectl", timeout_s=LATEST_S, every_s=0.001)  # noqa: B023
            late.append(max(0.0, seen.pop(name) - at) * 1000)
    figures.beside("kubectl_watch_p50_ms", percentile(late, 0.5), "ms")


@contextmanager
def watching(kubectl: str, kubeconfig: Path) -> Iterator[dict[str, float]]:
    seen: dict[str, float] = {}
    command = [kubectl, "--kubeconfig", str(kubeconfig), "get", "nodes", "--watch-only", "--no-headers"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def read() -> None:
        for line in running.stdout:
            seen[line.split()[0]] = time.perf_counter()

    threading.Thread(target=read, daemon=True).start()
    time.sleep(2)
    try:
        yield seen
    finally:
        running.terminate()
        running.wait(timeout=5)


if __name__ == "__main__":
    main()
