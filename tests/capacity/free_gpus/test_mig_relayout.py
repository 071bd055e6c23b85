"""Nodes that get another MIG layout: the gain is what the layout then serves, and pods that move have room."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.free_gpus.defragmentation import MovablePod
from capacity.free_gpus.mig_demand import ProfileRequest, mig_demand
from capacity.free_gpus.mig_relayout import ShapedNode, relayout
from fleet.models import Pod
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

H100 = "NVIDIA-H100-80GB-HBM3"
SMALL, HALF, WHOLE = "1g.10gb", "3g.40gb", ""
PER_GPU = {SMALL: 7, HALF: 2, WHOLE: 1}
DAY = timedelta(days=1)


def demand_of(nodes, requests):
    offered = Counter(dict.fromkeys(PER_GPU, 0))
    for node in nodes:
        offered[node.profile] += node.units
    times = [ProfileRequest(profile, number, NOON - days * DAY, NOON) for profile, number, days in requests]
    gpus = sum(node.gpus for node in nodes)
    return mig_demand(H100, gpus, offered, times, begin=NOON - 14 * DAY, end=NOON)


def a_node(key: int, profile: str, *, free: int | None = None, hours: float = 0.0, gpus: int = 2, **given):
    units = gpus * PER_GPU[profile]
    free = units if free is None else min(free, units)
    pod = MovablePod(key, f"ml/p-{key}", f"Job ml/j-{key}", 0, 0, 0, hours, is_job=True)
    return ShapedNode(key, f"n-{key}", profile, gpus, units, free, [pod] if free < units else [], **given)


NODES = st.lists(st.tuples(st.sampled_from(list(PER_GPU)), st.integers(0, 14), st.booleans()), min_size=1, max_size=6)
REQUESTS = st.lists(st.tuples(st.sampled_from(list(PER_GPU)), st.integers(1, 9), st.integers(1, 14)), max_size=6)


@given(drawn=NODES, requests=REQUESTS)
def test_the_gain_is_what_the_new_layout_serves_and_moved_pods_have_room(drawn, requests):
    nodes = [a_node(key, name, free=free, may_change=may) for key, (name, free, may) in enumerate(drawn)]
    demand = demand_of(nodes, requests)

    found = relayout(demand, nodes)

    new = {change.node.key: change.profile for change in found.nodes}
    then = [a_node(node.key, new.get(node.key, node.profile), free=0) for node in nodes]
    assert demand_of(then, requests).served_now == pytest.approx(demand.served_now + found.gain)
    assert all(change.gain >= 1 and change.node.may_change for change in found.nodes)
    staying = [node for node in nodes if node.key not in new]
    for profile in PER_GPU:
        moved = sum(change.node.units - change.node.free for change in found.nodes if change.node.profile == profile)
        assert moved <= sum(node.free for node in staying if node.profile == profile)


def test_the_node_whose_pods_lose_the_least_changes():
    nodes = [a_node(1, HALF, free=2, hours=90.0), a_node(2, HALF, free=2, hours=5.0), a_node(3, HALF)]

    found = relayout(demand_of(nodes, [(SMALL, 7, 14), (HALF, 4, 14)]), nodes, mixed=1)

    assert [(each.node.key, each.profile, each.config) for each in found.nodes] == [(3, SMALL, "all-1g.10gb")]
    assert found.gain == pytest.approx(14 * 24)
    busy = [a_node(1, HALF, free=2, hours=90.0), a_node(2, HALF, free=2, hours=5.0)]
    found = relayout(demand_of(busy, [(SMALL, 14, 14)]), busy)
    assert [each.node.key for each in found.nodes] == [2]
    assert (found.jobs, found.gpu_hours, found.shares[2]) == (["Job ml/j-2"], 5.0, pytest.approx(1.0))


@pytest.mark.django_db
@pytest.mark.sqlite
@pytest.mark.usefixtures("now")
def test_the_card_and_rest_name_the_nodes_to_change_and_open_the_preview_of_their_drain():
    bob = make.a_user("bob", role="viewer")
    pool = make.a_pool(make.a_cluster("east"), "h100")
    cut = {"pool": pool, "gpu_product": H100, "gpu_vendor": "nvidia", "physical_gpus": 2, "layout": ""}
    offers = {"allocatable": {"nvidia.com/mig-3g.40gb": 4}, "physical_mig": 2, "physical_whole": 0}
    first, second = (make.a_node(pool.cluster, name, **cut, **offers) for name in ("cut-1", "cut-2"))
    make.a_pod(
        first, "chat", gpus=0, resources={"nvidia.com/mig-3g.40gb": 1}, is_tenant=True, owner_kind="Job",
        owner_name="chat", started_at=NOON - timedelta(hours=7), ready_since=NOON - timedelta(hours=5),
    )  # fmt: skip
    first.requested = {"nvidia.com/mig-3g.40gb": 1}
    first.save()
    make.a_placement(second, "old", since=NOON - 9 * DAY, until=None, resources={"nvidia.com/mig-1g.10gb": 7})

    answer = calling(bob).get(f"/api/v1/pools/{pool.pk}/mig-demand").json()["mig_demand"]["changes"]
    shown = page(visiting(bob), f"/parts/pools/{pool.pk}/mig-demand")

    [change] = answer
    assert [(each["name"], each["profile_then"], each["pods"]) for each in change["nodes"]] == [("cut-2", SMALL, [])]
    assert f"/operations/new?kind=drain&nodes={second.pk}" in shown.links
    assert "nvidia.com/mig.config=all-1g.10gb" in shown.text
    second.is_unschedulable = True
    second.save()
    [change] = calling(bob).get(f"/api/v1/pools/{pool.pk}/mig-demand").json()["mig_demand"]["changes"]
    assert change["nodes"] == [], "the pod has no room on a cordoned node"
    second.is_unschedulable = False
    second.save()
    pinned = make.a_pod(
        second, "pinned", gpus=0, resources={"nvidia.com/mig-3g.40gb": 1}, is_tenant=True, owner_kind=""
    )
    [change] = calling(bob).get(f"/api/v1/pools/{pool.pk}/mig-demand").json()["mig_demand"]["changes"]
    moved = {key: change[key] for key in ("jobs", "gpu_hours_lost", "gpu_hours_loading")}
    assert [each["name"] for each in change["nodes"]] == ["cut-1"]
    assert moved == {"jobs": ["Job team-a/chat"], "gpu_hours_lost": 3.0, "gpu_hours_loading": pytest.approx(6 / 7)}
    Pod.objects.exclude(pk=pinned.pk).update(owner_kind="", owner_name="")
    [change] = calling(bob).get(f"/api/v1/pools/{pool.pk}/mig-demand").json()["mig_demand"]["changes"]
    assert (change["nodes"], change["nodes_staying"]) == ([], 2)
