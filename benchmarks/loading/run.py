"""Three equal loads, and how much the web process has after each."""

import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Figures
from benchmarks.loading.visitors import Load, Outcome, put
from benchmarks.observing import pages
from benchmarks.observing.worker import Running
from demo.parts import Fleet
from demo.stack import PASSWORD, Stack
from demo.visitor import Visitor, wait_until

LOADS = 3
GROWTH_MIB = 10
SEEN_S = 300.0


@dataclass(frozen=True)
class Size:
    sockets: int
    clients: int
    requests: int  # of each client
    rest_s: float  # after a load, before the web process is looked at


FULL = Size(sockets=300, clients=50, requests=20, rest_s=10)
SHORT = Size(sockets=12, clients=4, requests=20, rest_s=2)


def load(figures: Figures, folder: Path, fleet: Fleet, size: Size, *, database_url: str = "") -> None:
    with Stack(folder, fleet, database_url=database_url) as stack:
        person = Visitor(stack.url, "admin").sign_in(PASSWORD)
        there = wait_until(lambda: settled(person, fleet), what="the fleet", timeout_s=SEEN_S)
        asked = Load.by(person, [*pages.pages(there), *pages.lists(person, there)], **counts(size))
        web = Running(stack.children["web"].pid)
        figures.beside("web_before_mib", web.rss_mib, "MiB")
        outcomes, rss_mib = [], []
        for _ in range(LOADS):
            outcomes.append(put(asked))
            time.sleep(size.rest_s)
            rss_mib.append(web.rss_mib)
        figures.beside("web_peak_mib", web.peak_mib, "MiB")
        notify(figures, outcomes, rss_mib)


def counts(size: Size) -> dict[str, int]:
    return {"sockets": size.sockets, "clients": size.clients, "requests": size.requests}


def settled(person: Visitor, fleet: Fleet) -> dict[str, int]:
    """The keys that the paths need, once every node is in rows; empty before."""
    cluster = next(iter(person.all("/api/v1/clusters")), None)
    gpus, found = person.get("/api/v1/gpus", limit=1)["results"], person.get("/api/v1/pools", limit=1)["results"]
    if not cluster or cluster["counts"]["gpu_nodes"] != fleet.nodes or not gpus or not found:
        return {}
    return {"cluster_id": cluster["id"], "node_id": gpus[0]["node"]["id"], "pool_id": found[0]["id"]}


def notify(figures: Figures, outcomes: list[Outcome], rss_mib: list[float]) -> None:
    """The first load finds a process that has never worked: growth is what comes after it."""
    errors, closed = (sum(getattr(one, name) for one in outcomes) for name in ("errors", "closed_sockets"))
    first = next((one.first_error for one in outcomes if one.first_error), "")
    figures.at_most("errors", errors, 0, "answers", of=sum(one.answers for one in outcomes), first=first)
    figures.at_most("closed_sockets", closed, 0, "sockets")
    figures.beside("web_rss_mib", rss_mib[-1], "MiB", each=[round(each, 1) for each in rss_mib])
    figures.at_most("web_growth_mib", max(rss_mib[1:]) - rss_mib[0], GROWTH_MIB, "MiB")
