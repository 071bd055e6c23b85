"""Every list of REST: it has cursors, or a bound and a reason why it has none."""

import pytest

from edges.pagination import Pages
from edges.rest import Listing
from tests.config.rest_schema import rest_paths
from tests.config.test_who_may import READS

# Lists that are answered whole. Each has a bound.
WHOLE = {
    "/api/v1/automatic-quarantines/{pool_id}/backtests": "one for each rule",
    "/api/v1/cases/{case_id}/repair-actors": "the actors that there are",
    "/api/v1/clusters/{cluster_id}/domain-budgets": "one for each kind of domain",
    "/api/v1/clusters/{cluster_id}/pool-suggestions": "pools by product, of one cluster",
    "/api/v1/driver-objects/{driver_object_id}/suggested-stages": "stages of one plan",
    "/api/v1/finding-groups": "groups by rule and cause; the findings of a group have cursors",
    "/api/v1/nodes/{node_id}/gpus/{index}/hours": "hours of a period",
    "/api/v1/nodes/{node_id}/gpus/{index}/placements": "bounded by `limit`",
    "/api/v1/nodes/{node_id}/gpus/{index}/timeline": "bounded by a period",
    "/api/v1/nodes/{node_id}/hours": "hours of a period",
    "/api/v1/nodes/{node_id}/timeline": "bounded by a period",
    "/api/v1/pools/{pool_id}/limits": "one for each rule",
    "/api/v1/repeat-offenders": "200, as the page",
    "/api/v1/rules": "the rules that there are",
    "/api/v1/usage/prices": "prices of products",
}
BY_OFFSET = {"/api/v1/gpu-health": "ordered by live telemetry, which has no place to continue"}


def gets() -> dict[str, dict]:
    return {path: methods["get"] for path, methods in rest_paths().items() if "get" in methods}


def answers_with_array(operation: dict) -> bool:
    content = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    return content.get("schema", {}).get("type") == "array"


def parameters(operation: dict) -> set[str]:
    return {parameter["name"] for parameter in operation.get("parameters", [])}


def test_each_list_has_cursors_or_a_reason():
    found = gets()
    by_offset = {path for path, get in found.items() if {"limit", "offset"} <= parameters(get)}

    assert {path for path, get in found.items() if answers_with_array(get)} == set(WHOLE)
    assert {path for path in by_offset if "cursor" not in parameters(found[path])} - {"/api/v1/usage"} == set(BY_OFFSET)
    assert all(view.pagination_class in {Pages, None} for view in Listing.__subclasses__())


@pytest.mark.django_db
def test_every_list_continues_behind_its_last_row(there, root):
    """One row a page: an ordering that a cursor cannot follow would fail or lose rows."""
    operations = gets()
    listed = [path for _, path in READS if "cursor" in parameters(operations[path])]
    wrong = {}
    for path in listed:
        url = path.format(**there)
        whole, one = root.get(url).json(), root.get(f"{url}?limit=1").json()
        rows, pages = list(one["results"]), 1
        while one["next"] and pages <= whole["count"]:
            one, pages = root.get(one["next"]).json(), pages + 1
            rows += one["results"]
        if len(rows) != whole["count"] or one["next"]:
            wrong[path] = (len(rows), whole["count"])

    assert len(listed) > 40
    assert wrong == {}


def test_a_cursor_beside_an_offset_or_of_another_list_is_refused(root):
    assert root.get("/api/v1/nodes?cursor=x").status_code == 400
    assert root.get("/api/v1/nodes?cursor=x&offset=1").status_code == 400
