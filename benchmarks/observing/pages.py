"""How long pages and lists take: warm, one after the other, as one person asks for them."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.figures import percentile
from benchmarks.observing.worker import Running
from demo.visitor import Visitor

WARM_UP = 3
ROWS = 100
PAGES = (
    "/",
    "/?faults=1&sort=free",
    "/parts/fleet/overview",
    "/parts/fleet/nodes",
    "/parts/fleet/map",
    "/parts/fleet/map/index",
    "/findings",
    "/segments",
    "/pools",
    "/pools/{pool_id}",
    "/clusters/{cluster_id}",
    "/nodes/{node_id}",
    "/people",
)


@dataclass(frozen=True)
class Took:
    """What a path takes: as the person has it, and what of it the web process works. The rest is waiting for others."""

    p95_ms: float
    p50_ms: float
    cpu_ms: float  # the mean


def pages(there: dict[str, int]) -> list[str]:
    return [page.format(**there) for page in PAGES]


def lists(person: Visitor, there: dict[str, int]) -> list[str]:
    """Every list that the API's own description names, a hundred rows of each."""
    return list(_lists(person, there))


def _lists(person: Visitor, there: dict[str, int]) -> Iterable[str]:
    described = person.get("/api/v1/schema", format="json")["paths"]
    for path, verbs in described.items():
        asked = {one["name"] for one in verbs.get("get", {}).get("parameters", ()) if one["in"] == "query"}
        names = {one["name"] for one in verbs.get("get", {}).get("parameters", ()) if one["in"] == "path"}
        if "limit" in asked and names <= there.keys():
            yield f"{path.format(**there)}?limit={ROWS}"


def timed(person: Visitor, web: Running, paths: Iterable[str], *, times: int) -> dict[str, Took]:
    return {path: _took(person, web, path, times=times) for path in paths}


def _took(person: Visitor, web: Running, path: str, *, times: int) -> Took:
    for _ in range(WARM_UP):
        _once_ms(person, path)
    cpu_s = web.cpu_s
    took = [_once_ms(person, path) for _ in range(times)]
    cpu_ms = (web.cpu_s - cpu_s) * 1000 / times
    return Took(*(round(each, 1) for each in (percentile(took, 0.95), percentile(took, 0.5), cpu_ms)))


def _once_ms(person: Visitor, path: str) -> float:
    began = time.perf_counter()
    person.http.get(path).raise_for_status()
    return (time.perf_counter() - began) * 1000
