"""How long pages and lists take: warm, one after the other, as one person asks for them."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from benchmarks.figures import percentile
from demo.visitor import Visitor

WARM_UP = 3
ROWS = 100
PAGES = (
    "/",
    "/?faults=1&sort=free",
    "/parts/fleet/summary",
    "/parts/fleet/nodes",
    "/parts/fleet/map",
    "/findings",
    "/segments",
    "/pools",
    "/pools/{pool_id}",
    "/clusters/{cluster_id}",
    "/nodes/{node_id}",
)


@dataclass(frozen=True)
class Slowest:
    """Of several paths the one whose 95th percentile is the highest."""

    path: str
    p95_ms: float


def slowest_page(viewer: Visitor, there: dict[str, int], *, times: int) -> Slowest:
    return _slowest(viewer, [path.format(**there) for path in PAGES], times=times)


def slowest_list(viewer: Visitor, there: dict[str, int], *, times: int) -> Slowest:
    """Every list that the API's own description names, a hundred rows of each."""
    return _slowest(viewer, list(_lists(viewer, there)), times=times)


def _lists(viewer: Visitor, there: dict[str, int]) -> Iterable[str]:
    described = viewer.get("/api/v1/schema", format="json")["paths"]
    for path, verbs in described.items():
        asked = {one["name"] for one in verbs.get("get", {}).get("parameters", ()) if one["in"] == "query"}
        names = {one["name"] for one in verbs.get("get", {}).get("parameters", ()) if one["in"] == "path"}
        if "limit" in asked and names <= there.keys():
            yield f"{path.format(**there)}?limit={ROWS}"


def _slowest(viewer: Visitor, paths: list[str], *, times: int) -> Slowest:
    return max((_timed(viewer, path, times=times) for path in paths), key=lambda each: each.p95_ms)


def _timed(viewer: Visitor, path: str, *, times: int) -> Slowest:
    took = [_once_ms(viewer, path) for _ in range(WARM_UP + times)][WARM_UP:]
    return Slowest(path, percentile(took, 0.95))


def _once_ms(viewer: Visitor, path: str) -> float:
    began = time.perf_counter()
    viewer.http.get(path).raise_for_status()
    return (time.perf_counter() - began) * 1000
