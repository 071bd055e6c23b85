"""How long pages and lists take: warm, one after the other, as one person asks for them."""

import time
from collections.abc import Iterable

from benchmarks.figures import percentile
from demo.visitor import Visitor

WARM_UP = 3
ROWS = 100
PAGES = (
    "/",
    "/?faults=1&sort=free",
    "/parts/fleet/overview",
    "/parts/fleet/nodes",
    "/parts/fleet/map",
    "/findings",
    "/segments",
    "/pools",
    "/pools/{pool_id}",
    "/clusters/{cluster_id}",
    "/nodes/{node_id}",
)


Timed = dict[str, float]  # the 95th percentile of each path, in milliseconds


def time_pages(viewer: Visitor, there: dict[str, int], *, times: int) -> Timed:
    return {path: _p95_ms(viewer, path, times=times) for path in (page.format(**there) for page in PAGES)}


def time_lists(viewer: Visitor, there: dict[str, int], *, times: int) -> Timed:
    """Every list that the API's own description names, a hundred rows of each."""
    return {path: _p95_ms(viewer, path, times=times) for path in _lists(viewer, there)}


def _lists(viewer: Visitor, there: dict[str, int]) -> Iterable[str]:
    described = viewer.get("/api/v1/schema", format="json")["paths"]
    for path, verbs in described.items():
        asked = {one["name"] for one in verbs.get("get", {}).get("parameters", ()) if one["in"] == "query"}
        names = {one["name"] for one in verbs.get("get", {}).get("parameters", ()) if one["in"] == "path"}
        if "limit" in asked and names <= there.keys():
            yield f"{path.format(**there)}?limit={ROWS}"


def _p95_ms(viewer: Visitor, path: str, *, times: int) -> float:
    took = [_once_ms(viewer, path) for _ in range(WARM_UP + times)][WARM_UP:]
    return round(percentile(took, 0.95), 1)


def _once_ms(viewer: Visitor, path: str) -> float:
    began = time.perf_counter()
    viewer.http.get(path).raise_for_status()
    return (time.perf_counter() - began) * 1000
