"""What watching a cluster costs: decoding, the first list, a change on its way to a browser, a quiet cluster.

bin/bench observe [--nodes N] [--changes N] [--quiet-s S]; small by default, so that the tests can run it.
"""

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import django
import httpx

from benchmarks.figures import Figures, median_of_three, percentile

ROOT = Path(__file__).parents[1]
MERGE = {"Content-Type": "application/merge-patch+json"}


def main() -> None:
    asked = arguments()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-bench-") as folder:
        os.environ |= {"QUARTERDECK_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "config.settings.dev"}
        os.environ.pop("DATABASE_URL", None)
        django.setup()
        from fleet import announce, wake

        wake.queue = lambda *_, **__: None  # there is no broker here, and nobody to wake
        announce.send = lambda *_: None
        figures = Figures("observe", {"nodes": asked.nodes, "seed": asked.seed})
        with a_simulator(Path(folder), nodes=asked.nodes, seed=asked.seed) as (url, kubeconfig):
            measure(figures, url, kubeconfig, changes=asked.changes, quiet_s=asked.quiet_s)
    figures.end()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bin/bench observe")
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--quiet-s", type=float, default=20.0)
    return parser.parse_args()


@contextmanager
def a_simulator(folder: Path, *, nodes: int, seed: int) -> Iterator[tuple[str, str]]:
    kubeconfig = folder / "kubeconfig"
    command = [sys.executable, "-m", "simulator", "--port", "0", "--nodes", str(nodes), "--seed", str(seed)]
    command += ["--speed", "1", "--kubeconfig-out", str(kubeconfig), "--die-with-parent"]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield json.loads(running.stdout.readline())["url"], str(kubeconfig)
    finally:
        running.terminate()
        running.wait(timeout=10)


def measure(figures: Figures, url: str, kubeconfig: str, *, changes: int, quiet_s: float) -> None:
    decoding(figures, url)
    cluster = a_cluster(kubeconfig)
    first_sync(figures, url, cluster)
    with watching(cluster) as heard:
        change_to_announcement(figures, url, heard, changes=changes)
        quiet(figures, quiet_s)


def decoding(figures: Figures, url: str) -> None:
    """Our structs against the official client's models, on the same bytes in the same run."""
    from kubernetes.client import ApiClient

    from fleet.kube.decoding import decode_list
    from fleet.kube.structs import PodSeen

    body = httpx.get(f"{url}/api/v1/pods", params={"limit": 500}, timeout=60).content
    models = ApiClient()
    ours_s = median_of_three(lambda: seconds(lambda: decode_list(body, PodSeen)))
    theirs_s = median_of_three(
        lambda: seconds(lambda: models.deserialize(body.decode(), "V1PodList", "application/json"))
    )
    figures.at_least("decode_ratio", theirs_s / ours_s, 30, "x")


def a_cluster(kubeconfig: str) -> Any:
    from django.core.management import call_command
    from django.utils import timezone

    from fleet import kube
    from fleet.models import Cluster, Observer

    call_command("migrate", verbosity=0)
    uid = kube.kube_system_uid(kube.connect(kubeconfig, "simulator"))
    now = timezone.now()
    cluster = Cluster.objects.create(name="bench", uid=uid, kubeconfig=kubeconfig, context="simulator", added_at=now)
    Observer.objects.create(cluster=cluster, lease_until=now - timedelta(seconds=1))
    call_command("suggest_pools", "bench", "--create", stdout=io.StringIO())
    return cluster


def first_sync(figures: Figures, url: str, cluster: Any) -> None:
    """From nothing to rows; beside it, what the API server alone needs to serve the same lists."""
    from fleet.models import Gpu, Node, Pod
    from fleet.observe.kinds import KINDS

    served_s = seconds(lambda: [read_all(url, kind.resource.path()) for kind in KINDS.values()])
    taken_s = seconds(lambda: hold(cluster, until=is_listed))
    figures.beside("simulator_s", served_s, "s")
    figures.at_most("first_sync_s", taken_s - served_s, 10, "s")
    for model in (Node, Gpu, Pod):
        figures.beside(f"{model.__name__.lower()}_rows", model.objects.count(), "rows")


def is_listed(cluster: Any) -> bool:
    from fleet.models import Bookmark
    from fleet.observe.kinds import KINDS

    return Bookmark.objects.filter(cluster=cluster, listed_at__isnull=False).count() == len(KINDS)


def hold(cluster: Any, *, until: Callable[[Any], bool]) -> None:
    """One turn that ends as soon as something is true."""
    from fleet.models import Observer
    from fleet.observe.turn import take_turn

    stop = threading.Event()

    def look() -> None:
        while not until(cluster):
            time.sleep(0.05)
        stop.set()

    threading.Thread(target=look, daemon=True).start()
    take_turn(cluster.pk, Observer.objects.get(cluster=cluster).turn, seconds=600, stop=stop)


@contextmanager
def watching(cluster: Any) -> Iterator[list[tuple[float, dict[str, Any]]]]:
    """A turn behind us; what it announces, with the moment it was handed to the channel layer."""
    from fleet import announce

    heard: list[tuple[float, dict[str, Any]]] = []
    announce.send = lambda _, message: heard.append((time.perf_counter(), message))  # where the layer would take over
    is_over = threading.Event()
    turn = threading.Thread(target=hold, args=(cluster,), kwargs={"until": lambda _: is_over.is_set()})
    turn.start()
    time.sleep(2)
    yield heard
    is_over.set()
    turn.join()


def change_to_announcement(
    figures: Figures, url: str, heard: list[tuple[float, dict[str, Any]]], *, changes: int
) -> None:
    """One label after another, with time between them: from the API server's answer to our message."""
    names = [
        node["metadata"]["name"] for node in httpx.get(f"{url}/api/v1/nodes", params={"limit": 50}).json()["items"]
    ]
    late = []
    with httpx.Client(base_url=url) as client:
        for number in range(changes):
            before = len(heard)
            patch = {"metadata": {"labels": {"bench": str(number)}}}
            client.patch(f"/api/v1/nodes/{names[number % len(names)]}", content=json.dumps(patch), headers=MERGE)
            begun = time.perf_counter()
            while not any("nodes" in message["kinds"] for _, message in heard[before:]):
                if time.perf_counter() - begun > 10:
                    raise TimeoutError("a change was never announced")
                time.sleep(0.001)
            at = next(at for at, message in heard[before:] if "nodes" in message["kinds"])
            late.append((at - begun) * 1000)
            time.sleep(0.3)
    figures.at_most("change_to_announcement_p50_ms", percentile(late, 0.5), 60, "ms")
    figures.at_most("change_to_announcement_p99_ms", percentile(late, 0.99), 250, "ms")


def quiet(figures: Figures, for_s: float) -> None:
    """This process, with nothing but heartbeats to hear."""
    cpu = time.process_time()
    time.sleep(for_s)
    figures.at_most("quiet_cpu_percent", (time.process_time() - cpu) / for_s * 100, 2, "%")
    figures.at_most("resident_mib", resident_mib(), 400, "MiB")


def resident_mib() -> float:
    words = Path("/proc/self/statm").read_text().split()
    return int(words[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def read_all(url: str, path: str) -> None:
    query: dict[str, str | int] = {"limit": 500}
    while True:
        answer = httpx.get(f"{url}{path}", params=query, timeout=60)
        _, _, rest = answer.content[-4096:].partition(b'"continue":"')
        found = rest.split(b'"')[0] or answer.content[:4096].partition(b'"continue":"')[2].split(b'"')[0]
        if not found:
            return
        query["continue"] = found.decode()


def seconds(act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
