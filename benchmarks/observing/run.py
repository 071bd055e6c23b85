"""One size of fleet through all that is measured, in one stack."""

import re
import shutil
import sqlite3
import statistics
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.figures import Figures, percentile
from benchmarks.observing import changes, kubectl, pages
from benchmarks.observing.api import Api
from benchmarks.observing.crowd import crowd
from benchmarks.observing.decoding import decode_ratio, typed_models_s
from benchmarks.observing.ear import TOPIC, Ear
from benchmarks.observing.worker import Running
from demo.parts import Fleet
from demo.stack import PASSWORD, Stack
from demo.visitor import Visitor, wait_until

FIRST_SYNC_S = 600.0
# The rows themselves: to ask for the cluster's page all the time would take from what is measured.
FIRST_AND_LAST = "SELECT (SELECT added_at FROM fleet_cluster), (SELECT max(listed_at) FROM fleet_bookmark)"
KINDS_AND_MISSING = """
    SELECT count(*), sum(listed_at IS NULL AND state NOT IN ('absent', 'forbidden')) FROM fleet_bookmark
"""
Costs = dict[str, dict[str, float]]  # of pages and of lists, by path: milliseconds of CPU
GROWTH_AT_MOST = 1.5
STORM_PER_S = 50.0
CHURN_PER_S = 5.0


@dataclass(frozen=True)
class Length:
    """How much of everything: more of it for percentiles that mean something."""

    rounds: int
    changes: int  # a round
    storm_s: float
    clients: int  # that listen meanwhile
    kubectl: int
    settle_s: float
    quiet_s: float
    churn_s: float
    times: int  # that a page is asked for


FULL = Length(
    rounds=3, changes=100, storm_s=30, clients=100, kubectl=100, settle_s=30, quiet_s=300, churn_s=600, times=40
)
SHORT = Length(rounds=1, changes=5, storm_s=2, clients=10, kubectl=5, settle_s=3, quiet_s=5, churn_s=10, times=4)


class Introduced(Stack):
    """A stack whose cluster is added when it is asked to be: what comes before has the API server for itself."""

    def connect(self) -> None:
        pass

    def add(self) -> None:
        self.manage(self.adding())

    def suggest(self) -> None:
        self.manage(self.suggesting())


def observe(figures: Figures, folder: Path, fleet: Fleet, length: Length) -> Costs:
    """What each page and list took of the web process."""
    costs: Costs = {}
    with Introduced(folder, fleet) as stack, Api(stack.simulator_url) as api:
        figures.at_least("decode_ratio", decode_ratio(api), 30, "x")
        person = Visitor(stack.url, "admin").sign_in(PASSWORD)
        first_sync(figures, stack, api)
        stack.suggest()
        ids = {node["name"]: node["id"] for node in person.all("/api/v1/nodes", limit=1000)}
        with person.listening(TOPIC) as socket:
            latency(figures, stack, api, person, Ear(socket), ids, length)
        observer, web = (Running(stack.children[name].pid) for name in ("observe", "web"))
        standing(figures, observer, api, length, churning=lambda: costs.update(reading(figures, person, web, length)))
    return costs


def first_sync(figures: Figures, stack: Introduced, api: Api) -> None:
    """From the moment the cluster is ours until every kind that it serves is in rows."""
    since, observer = api.newest_request(), Running(stack.children["observe"].pid)
    cpu_s = observer.cpu_s
    stack.add()
    with closing(sqlite3.connect(stack.folder / "quarterdeck.sqlite3")) as rows:
        wait_until(lambda: is_listed(rows), what="the first list", timeout_s=FIRST_SYNC_S)
        cpu_s = observer.cpu_s - cpu_s
        ((begun, ended),) = rows.execute(FIRST_AND_LAST)
    taken_s = (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()
    paths = api.paths_listed(since=since)
    serving_s = statistics.median(api.serving_s(paths) for _ in range(3))
    figures.beside("simulator_s", serving_s, "s")
    figures.at_most("first_sync_s", taken_s - serving_s, 10, "s", cpu_s=round(cpu_s, 2))
    theirs_s = typed_models_s(api, paths)
    figures.beside("typed_models_s", theirs_s, "s")
    figures.at_least("first_sync_ratio", theirs_s / (taken_s - serving_s), 3, "x")


def is_listed(rows: sqlite3.Connection) -> bool:
    ((kinds, missing),) = rows.execute(KINDS_AND_MISSING)
    return bool(kinds and not missing)


def latency(
    figures: Figures, stack: Stack, api: Api, person: Visitor, ear: Ear, ids: dict[str, int], length: Length
) -> None:
    time.sleep(length.settle_s)
    rounds = [changes.alone(api, ear, ids, changes=length.changes) for _ in range(length.rounds)]
    figures.at_most("change_to_socket_p50_ms", median_of(rounds, 0.5), 60, "ms")
    figures.at_most("change_to_socket_p99_ms", median_of(rounds, 0.99), 250, "ms")
    with crowd(person, length.clients - 1):
        rounds = [changes.storm(api, ear, ids, per_s=STORM_PER_S, for_s=length.storm_s) for _ in range(length.rounds)]
    figures.at_most("change_to_socket_loaded_p99_ms", median_of(rounds, 0.99), 500, "ms")
    program = shutil.which("kubectl")
    if program is None:
        figures.lacks("kubectl_watch_p99_ms", "kubectl is not on the PATH")
        return
    late = kubectl.late_ms(program, stack.kubeconfig, api, list(ids), changes=length.kubectl)
    figures.beside("kubectl_watch_p99_ms", percentile(late, 0.99), "ms")


def median_of(rounds: list[list[float]], share: float) -> float:
    return statistics.median(percentile(late, share) for late in rounds)


def standing(figures: Figures, worker: Running, api: Api, length: Length, *, churning: Callable[[], None]) -> None:
    """What it costs to go on watching: first nothing but heartbeats, then a fleet that lives."""
    time.sleep(length.settle_s)
    cpu_s, began = worker.cpu_s, time.monotonic()
    time.sleep(length.quiet_s)
    figures.at_most("quiet_cpu_ratio", (worker.cpu_s - cpu_s) / (time.monotonic() - began), 0.02, "of a core")
    rss_mib, until = worker.rss_mib, time.monotonic() + length.churn_s
    api.churn(CHURN_PER_S)
    churning()
    time.sleep(max(0.0, until - time.monotonic()))
    figures.at_most("observer_rss_mib", worker.rss_mib, 400, "MiB")
    figures.at_most("observer_growth_mib", worker.rss_mib - rss_mib, 5, "MiB")


def reading(figures: Figures, person: Visitor, web: Running, length: Length) -> Costs:
    costs: Costs = {}
    there = {
        "cluster_id": person.all("/api/v1/clusters")[0]["id"],
        "node_id": person.get("/api/v1/gpus", limit=1)["results"][0]["node"]["id"],
        "pool_id": person.get("/api/v1/pools", limit=1)["results"][0]["id"],
    }
    for name, paths, target_ms in (("page", pages.pages(there), 150), ("list", pages.lists(person, there), 100)):
        each = pages.timed(person, web, paths, times=length.times)
        told = {
            path: asdict(took) | {"/ reference": figures.per_reference(took.p95_ms, "ms")}
            for path, took in each.items()
        }
        slowest = max(took.p95_ms for took in each.values())
        figures.at_most(f"{name}_p95_ms", slowest, target_ms, "ms", each=told)
        costs[name] = {anywhere(path): took.cpu_ms for path, took in each.items()}
    return costs


def growth(figures: Figures, large: Costs, small: Costs) -> None:
    """The slowest at the one size, by its own CPU time, against the same at the other."""
    for name, costs in large.items():
        slowest = max(costs, key=lambda path: costs[path])
        each = {path: round(took / small[name][path], 2) for path, took in costs.items() if small[name].get(path)}
        figures.at_most(f"{name}_growth_ratio", each[slowest], GROWTH_AT_MOST, "x", slowest=slowest, each=each)


def anywhere(path: str) -> str:
    """The same path in another database."""
    return re.sub(r"/\d+", "/N", path)
