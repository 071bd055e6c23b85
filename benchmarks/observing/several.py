"""Several clusters of one size, watched by one observe worker."""

import socket
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from benchmarks.figures import Figures
from benchmarks.observing import pages
from benchmarks.observing.run import FIRST_SYNC_S, Introduced, Length
from benchmarks.observing.worker import Running
from demo import parts, rights
from demo.parts import Fleet
from demo.stack import PASSWORD
from demo.visitor import Visitor, wait_until

LISTED = """
    SELECT count(DISTINCT cluster_id), sum(listed_at IS NULL AND state NOT IN ('absent', 'forbidden'))
    FROM fleet_bookmark
"""
RSS_MIB, QUIET_CPU_RATIO, PAGE_MS, LIST_MS = 1400, 0.08, 150, 100
START_S = 300.0


class SeveralClusters(Introduced):
    """A stack with a simulator for each cluster. The first is the stack's own."""

    def __init__(self, folder: Path, fleet: Fleet, clusters: int) -> None:
        super().__init__(folder, fleet)
        self.folders = [self.folder / f"cluster-{number}" for number in range(1, clusters)]

    def add(self) -> None:
        super().add()
        for number, folder in enumerate(self.folders, 1):
            folder.mkdir()
            fleet = replace(self.fleet, seed=self.fleet.seed + number)
            self.start_beside(folder.name, parts.simulator(fleet, folder))
        for folder in self.folders:
            kubeconfig = folder / "kubeconfig"
            wait_until(partial(_listens, kubeconfig), what=folder.name, timeout_s=START_S)
            rights.grant(kubeconfig, self.fleet.context)
            context = ["--kubeconfig", str(kubeconfig), "--context", self.fleet.context]
            self.manage(["add_cluster", folder.name, *context, "--mode", "operate"])


def _listens(kubeconfig: Path) -> bool:
    """Say whether the server of a kubeconfig takes connections: the file is there before."""
    if not kubeconfig.exists():
        return False
    at = urlsplit(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    with suppress(OSError), socket.create_connection((at.hostname, at.port), timeout=2):
        return True
    return False


def observe_several(figures: Figures, folder: Path, fleet: Fleet, clusters: int, length: Length) -> None:
    """Measures the worker and the pages with that many clusters. Figures are of all clusters together."""
    with SeveralClusters(folder, fleet, clusters) as stack:
        person = Visitor(stack.url, "admin").sign_in(PASSWORD)
        began = time.monotonic()
        stack.add()
        with closing(sqlite3.connect(stack.folder / "quarterdeck.sqlite3")) as rows:
            wait_until(lambda: _are_listed(rows, clusters), what="the first lists", timeout_s=FIRST_SYNC_S * clusters)
        figures.beside("added_and_listed_s", time.monotonic() - began, "s")
        stack.suggest()
        observer, web = (Running(stack.children[name].pid) for name in ("observe", "web"))
        time.sleep(length.settle_s)
        cpu_s, began = observer.cpu_s, time.monotonic()
        time.sleep(length.quiet_s)
        ratio = (observer.cpu_s - cpu_s) / (time.monotonic() - began)
        figures.at_most("quiet_cpu_ratio", ratio, QUIET_CPU_RATIO, "of a core")
        there = {
            "cluster_id": person.all("/api/v1/clusters")[0]["id"],
            "node_id": person.get("/api/v1/gpus", limit=1)["results"][0]["node"]["id"],
            "pool_id": person.get("/api/v1/pools", limit=1)["results"][0]["id"],
        }
        for name, paths, target in (
            ("fleet_page", ["/"], PAGE_MS), ("page", pages.pages(there), PAGE_MS),
            ("list", pages.lists(person, there), LIST_MS),
        ):  # fmt: skip
            each = pages.timed(person, web, paths, times=length.times)
            told = {path: asdict(took) for path, took in each.items()}
            figures.at_most(f"{name}_p95_ms", max(took.p95_ms for took in each.values()), target, "ms", each=told)
        figures.at_most("observer_rss_mib", observer.rss_mib, RSS_MIB, "MiB")


def _are_listed(rows: sqlite3.Connection, clusters: int) -> bool:
    ((known, missing),) = rows.execute(LISTED)
    return bool(known == clusters and not missing)
