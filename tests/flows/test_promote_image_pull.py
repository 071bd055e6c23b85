"""Z36: an image that cannot be pulled is found before the window, by a Job that leaves nothing behind."""

from collections.abc import Callable

import pytest

from demo.visitor import Visitor, wait_until
from tests.flows.asked import Asked
from tests.flows.cluster import PATIENCE_S, Cluster
from tests.flows.plans import MISSING, Plan, Shown

pytestmark = [pytest.mark.promote, pytest.mark.nightly]
UNUSED = "580.173.02"  # no other flow promotes it, so no node of a shared stack has its image


def pull(plan: Plan, **given: object) -> Shown:
    """Asked for, and waited for until it is over."""
    asked = plan.operator.post(f"{plan.path}/image-pulls", {"reason": "Before the window.", **given})
    path = f"/api/v1/operations/{asked['operation']['id']}"
    wait_until(lambda: _over(plan.operator, path), what=f"the end of {path}", timeout_s=PATIENCE_S)
    (shown,) = plan.operator.get(f"{plan.path}/image-pulls")["results"]
    return dict(shown)


def mark(shown: Shown) -> str:
    return f"operation-{shown['operation']['id']}"


def _over(operator: Visitor, path: str) -> bool:
    return operator.get(path)["state"] in {"finished", "cancelled"}


def warned(plan: Plan) -> dict[str, Shown]:
    return {check["code"]: check for check in plan.operator.get(f"{plan.path}/preview")["warnings"]}


def of_jobs(plan: Plan, method: str) -> list[Asked]:
    return [asked for asked in plan.requests() if asked.method == method and "/jobs" in asked.path]


def test_an_image_that_is_there_is_proven_on_the_nodes_that_go_first_and_its_jobs_are_gone(
    plan_for: Callable[..., Plan], gpu_cluster: Cluster
):
    plan = plan_for().draft(to=UNUSED)
    before = warned(plan)

    shown = pull(plan, nodes_each=2)

    assert "image-untried" in before
    assert shown["is_proven"] is True
    assert {node["outcome"] for node in shown["nodes"]} == {"pulled"}
    assert all("Pulled within" in node["says"] for node in shown["nodes"])
    assert all(node["image"].endswith(f":{plan.to_version}-{node['system']}") for node in shown["nodes"])
    assert {node["node"] for node in shown["nodes"]} <= set(gpu_cluster.names(plan.driver))
    assert gpu_cluster.jobs_of(mark(shown)) == []
    made, deleted = of_jobs(plan, "POST"), of_jobs(plan, "DELETE")
    assert len(made) == len(deleted) == len(shown["nodes"])
    assert all("/namespaces/gpu-operator/jobs" in asked.path for asked in (*made, *deleted))
    assert all(asked.body["preconditions"]["uid"] for asked in deleted)
    assert warned(plan)["image-pulled"]["is_good"] is True
    assert gpu_cluster.marked() == set()


def test_an_image_that_is_not_there_is_told_in_the_registrys_words_and_its_jobs_are_gone(
    plan_for: Callable[..., Plan], gpu_cluster: Cluster
):
    plan = plan_for().draft(to=MISSING)

    shown = pull(plan)

    assert shown["is_proven"] is False
    assert {node["outcome"] for node in shown["nodes"]} == {"failed"}
    assert all(f"Image does not exist: {node['image']}." in node["says"] for node in shown["nodes"])
    assert all("not found" in node["says"] for node in shown["nodes"])
    assert gpu_cluster.jobs_of(mark(shown)) == []
    assert warned(plan)["image-failed"]["is_grave"] is True


def test_a_discarded_draft_takes_its_jobs_with_it(plan_for: Callable[..., Plan], gpu_cluster: Cluster):
    plan = plan_for().draft()
    asked = plan.operator.post(f"{plan.path}/image-pulls", {"reason": "Before the window.", "nodes_each": 2})

    plan.notify("discards")

    path = f"/api/v1/operations/{asked['operation']['id']}"
    wait_until(lambda: _over(plan.operator, path), what=f"the end of {path}", timeout_s=PATIENCE_S)
    wait_until(lambda: gpu_cluster.jobs_of(mark(asked)) == [], what="the end of its Jobs", timeout_s=PATIENCE_S)
    assert plan.operator.get(path)["state_reason"].endswith("The plan is discarded and no longer needs its image.")
