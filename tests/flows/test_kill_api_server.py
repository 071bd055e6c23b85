"""The API server is gone, fails, forgets or takes its time: nothing is lost, and the answers say since when."""

from collections.abc import Callable

import pytest

from demo.visitor import Visitor, wait_until
from tests.flows.asked import Asked
from tests.flows.cluster import PATIENCE_S, Cluster
from tests.flows.plans import Plan, canary, is_release, the_others
from tests.flows.proxy import Proxy

pytestmark = [pytest.mark.act, pytest.mark.nightly]
NODES = "/api/v1/nodes"
Planner = Callable[..., Plan]
GONE = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "Expired",
    "code": 410,
    "message": "too old resource version",
}
FAILING = {
    "kind": "Status",
    "apiVersion": "v1",
    "status": "Failure",
    "reason": "InternalError",
    "code": 500,
    "message": "etcd",
}


def test_however_long_it_is_gone_nothing_fails_and_it_is_said(
    plan_for: Planner, gpu_cluster: Cluster, proxy: Proxy, operator: Visitor
):
    plan = plan_for().draft(canary(), the_others()).start().until_opening()
    plan.approve()
    plan.until(lambda shown: shown["stages"][1]["targets_by_state"].get("changing"), "a change in the second stage")
    with proxy.gone():
        said = plan.until_said("refused the connection")
        nodes = wait_until(lambda: bookmark(operator, "refused"), what="a bookmark that fails", timeout_s=PATIENCE_S)
        # Past the time for which what was last heard still counts.
        wait_until(lambda: "Not observed since" in page(operator, "/"), what="a fleet not seen", timeout_s=PATIENCE_S)
        during = plan.now()
        plan_page = page(operator, f"/plans/{plan.id}")
        ready = operator.all("/api/v1/clusters")[0]["counts"]
    plan.until_state("promoted")

    assert said["state"] == during["state"] == "promoting"
    assert [stage["state"] for stage in during["stages"]][:2] == ["passed", "promoting"]
    assert nodes["last_seen_at"]
    assert "refused the connection" in plan_page
    assert ready["ready"] == ready["gpu_nodes"]
    assert sorted(plan.released()) == sorted(plan.all_targets())
    assert gpu_cluster.marked() == set()


def test_errors_and_slow_answers_only_cost_time(plan_for: Planner, gpu_cluster: Cluster, proxy: Proxy):
    plan = plan_for().draft(canary(), the_others()).start().until_opening()
    with (
        proxy.answering(fails_now_and_then, 500, FAILING),
        proxy.answering(is_release, 429, {**FAILING, "reason": "TooManyRequests", "code": 429}, times=2),
        proxy.slow(lambda asked: asked.n % 7 == 0, 0.5),
    ):
        plan.approve()
        plan.until_state("promoted")

    assert sorted(plan.released()) == sorted(plan.all_targets())
    assert [asked for asked in plan.requests() if asked.code == 500]
    assert gpu_cluster.marked() == set()


def fails_now_and_then(asked: Asked) -> bool:
    return not asked.is_watch and asked.n % 31 == 0


def test_410_in_all_three_places_is_a_new_list(gpu_cluster: Cluster, proxy: Proxy, operator: Visitor):
    """What was forgotten stays forgotten: whoever asks again, also under the next lease, is told so until it lists."""
    name = gpu_cluster.names("h100")[0]
    proxy.page_size = 3
    since = proxy.count

    def lists() -> int:
        return sum(map(begins_a_list_of_nodes, proxy.requests(since)))

    with (
        proxy.answering(lambda asked: watches_nodes(asked) and lists() == 0, 410, GONE),
        proxy.answering(lambda asked: goes_on_with_nodes(asked) and lists() == 1, 410, GONE),
        proxy.answering(lambda asked: watches_nodes(asked) and lists() == 2, 200, {"type": "ERROR", "object": GONE}),
        gpu_cluster.cordoned(name),
    ):
        proxy.drop()
        wait_until(lambda: lists() >= 3, what=lambda: f"three lists, not {lists()}", timeout_s=PATIENCE_S)
        wait_until(lambda: is_cordoned(operator, name), what="the change of that time", timeout_s=PATIENCE_S)
    proxy.page_size = 0

    wait_until(lambda: not is_cordoned(operator, name), what="a change after it", timeout_s=PATIENCE_S)
    assert bookmark(operator, "live")["state"] == "live"


def watches_nodes(asked: Asked) -> bool:
    return asked.is_watch and asked.path == NODES


def begins_a_list_of_nodes(asked: Asked) -> bool:
    return asked.is_list and asked.path == NODES and "continue" not in asked.query


def goes_on_with_nodes(asked: Asked) -> bool:
    return asked.path == NODES and "continue" in asked.query


def page(operator: Visitor, path: str) -> str:
    return operator.http.get(path).text


def is_cordoned(operator: Visitor, name: str) -> bool:
    return any(row["is_unschedulable"] for row in operator.all("/api/v1/nodes", name=name))


def bookmark(operator: Visitor, words: str) -> dict:
    """What is said of how fresh the nodes are, once it has these words in it."""
    kinds = operator.all("/api/v1/clusters")[0]["freshness"]
    nodes = next(kind for kind in kinds if kind["kind"] == "nodes")
    return nodes if words in nodes["sentence"] else {}
