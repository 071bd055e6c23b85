"""Nodes that get another MIG layout: the gain is what the layout then serves, and pods that move have room."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.free_gpus.defragmentation import MovablePod
from capacity.free_gpus.mig_demand import ProfileRequest, mig_demand
from capacity.free_gpus.mig_relayout import ShapedNode, relayout
from fleet.models import DisruptionBudget, Node, Pod
from kube.resources import DISRUPTION_BUDGETS
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
    pod = MovablePod(key, f"ml/p-{key}", f"Job ml/j-{key}", units - free, 0, 0, hours, is_job=True)
    return ShapedNode(key, f"n-{key}", profile, gpus, units, free, [pod] if free < units else [], **given)


PODS = st.lists(st.tuples(st.integers(1, 4), st.sets(st.integers(0, 1), max_size=1)), max_size=4)
NODES = st.lists(
    st.tuples(st.sampled_from(list(PER_GPU)), PODS, st.integers(0, 9), st.sampled_from("ab"), st.booleans()),
    min_size=1, max_size=6,
)  # fmt: skip
REQUESTS = st.lists(st.tuples(st.sampled_from(list(PER_GPU)), st.integers(1, 9), st.integers(1, 14)), max_size=6)


def fleet_of(drawn) -> list[ShapedNode]:
    nodes = []
    for key, (profile, sizes, cpu, taints, may) in enumerate(drawn):
        free, pods = 4 * PER_GPU[profile], []
        for size, budgets in sizes:
            if size <= free:
                number = 10 * key + len(pods)
                pods.append(MovablePod(number, f"ml/p-{number}", "Job ml/j", size, 3, 1, 0.0, budgets=tuple(budgets)))
                free -= size
        units = 4 * PER_GPU[profile]
        nodes.append(ShapedNode(key, f"n-{key}", profile, 4, units, free, pods, cpu, 9, taints, may))
    return nodes


@given(drawn=NODES, requests=REQUESTS, allowed=st.integers(0, 3))
def test_the_gain_is_what_the_new_layout_serves_and_each_moved_pod_has_room(drawn, requests, allowed):
    nodes, budgets = fleet_of(drawn), {0: allowed, 1: 0}
    demand = demand_of(nodes, requests)

    found = relayout(demand, nodes, budgets=budgets)

    new = {change.node.key: change.profile for change in found.nodes}
    then = [a_node(node.key, new.get(node.key, node.profile), free=0, gpus=4) for node in nodes]
    assert demand_of(then, requests).served_now == pytest.approx(demand.served_now + found.gain)
    assert all(change.gain >= 1 and change.node.may_change for change in found.nodes)
    by_name = {node.name: node for node in nodes}
    units, cpu, spent = Counter[str](), Counter[str](), Counter[int]()
    for change in found.nodes:
        assert {move.pod.key for move in change.moves} == {pod.key for pod in change.node.pods}
        for move in change.moves:
            target = by_name[move.target]
            assert (target.profile, target.taints) == (change.node.profile, change.node.taints)
            assert target.key not in new
            units[move.target] += move.pod.gpus
            cpu[move.target] += move.pod.cpu_m
            spent.update(move.pod.budgets)
    assert all(number <= by_name[name].free for name, number in units.items())
    assert all(number <= by_name[name].cpu_m for name, number in cpu.items())
    assert all(number <= budgets[budget] for budget, number in spent.items())


def test_a_pod_that_fits_on_no_single_node_keeps_its_node():
    nodes = [
        a_node(1, WHOLE, free=0, gpus=4),
        *(a_node(key, WHOLE, free=1, gpus=4, may_change=False) for key in range(2, 6)),
    ]
    requests = [(SMALL, 28, 14)]

    assert relayout(demand_of(nodes, requests), nodes).nodes == []
    nodes[1] = a_node(2, WHOLE, gpus=4, may_change=False)
    [change] = relayout(demand_of(nodes, requests), nodes).nodes
    assert (change.node.key, [move.target for move in change.moves]) == (1, ["n-2"])


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
    path = f"/api/v1/pools/{pool.pk}/mig-demand"
    cut = {"pool": pool, "gpu_product": H100, "gpu_vendor": "nvidia", "physical_gpus": 2, "layout": ""}
    cut["memory_allocatable_bytes"] = 2
    offers = {"allocatable": {"nvidia.com/mig-3g.40gb": 4}, "physical_mig": 2, "physical_whole": 0}
    first, second = (make.a_node(pool.cluster, name, **cut, **offers) for name in ("cut-1", "cut-2"))
    make.a_pod(
        first, "chat", gpus=0, resources={"nvidia.com/mig-3g.40gb": 1}, is_tenant=True, owner_kind="Job",
        owner_name="chat", memory_bytes=1, has_empty_dir=True, labels={"app": "chat"},
        started_at=NOON - timedelta(hours=7), ready_since=NOON - timedelta(hours=5),
    )  # fmt: skip
    first.requested = {"nvidia.com/mig-3g.40gb": 1}
    first.save()
    make.a_placement(second, "old", since=NOON - 9 * DAY, until=None, resources={"nvidia.com/mig-1g.10gb": 7})

    answer = calling(bob).get(path).json()["mig_demand"]
    assert (answer["knows_budgets"], answer["changes"][0]["nodes"]) == (False, [])
    card = page(visiting(bob), f"/parts/pools/{pool.pk}/mig-demand").text
    assert "the PodDisruptionBudgets of the cluster were never read" in card
    make.a_bookmark(pool.cluster, DISRUPTION_BUDGETS.name)
    answer = calling(bob).get(path).json()["mig_demand"]["changes"]
    shown = page(visiting(bob), f"/parts/pools/{pool.pk}/mig-demand")

    [change] = answer
    assert [(each["name"], each["profile_then"], each["pods"]) for each in change["nodes"]] == [("cut-2", SMALL, [])]
    assert f"/operations/new?kind=drain&nodes={second.pk}" in shown.links
    assert "nvidia.com/mig.config=all-1g.10gb" in shown.text
    second.is_unschedulable = True
    second.save()
    [change] = calling(bob).get(path).json()["mig_demand"]["changes"]
    assert change["nodes"] == [], "the pod has no room on a cordoned node"
    second.is_unschedulable = False
    second.save()
    pinned = make.a_pod(
        second, "pinned", gpus=0, resources={"nvidia.com/mig-3g.40gb": 1}, is_tenant=True, owner_kind=""
    )
    [change] = calling(bob).get(path).json()["mig_demand"]["changes"]
    moved = {key: change[key] for key in ("jobs", "gpu_hours_lost", "gpu_hours_loading", "pods_with_empty_dir")}
    assert [each["name"] for each in change["nodes"]] == ["cut-1"]
    assert moved == {
        "jobs": ["Job team-a/chat"], "gpu_hours_lost": 3.0, "gpu_hours_loading": pytest.approx(6 / 7),
        "pods_with_empty_dir": 1,
    }  # fmt: skip
    assert "1 pod loses emptyDir data" in page(visiting(bob), f"/parts/pools/{pool.pk}/mig-demand").text
    for kept in (
        {"taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}]},
        {"memory_allocatable_bytes": 0},
    ):
        before = {name: getattr(second, name) for name in kept}
        Node.objects.filter(pk=second.pk).update(**kept)
        [change] = calling(bob).get(path).json()["mig_demand"]["changes"]
        assert (change["nodes"], change["nodes_staying"]) == ([], 2), kept
        Node.objects.filter(pk=second.pk).update(**before)
    budget = DisruptionBudget.objects.create(
        cluster=pool.cluster, uid="b", namespace="team-a", name="b", changed_at=NOON, disruptions_allowed=0,
        selector={"matchLabels": {"app": "chat"}},
    )  # fmt: skip
    [change] = calling(bob).get(path).json()["mig_demand"]["changes"]
    assert change["nodes"] == []
    budget.delete()
    Pod.objects.exclude(pk=pinned.pk).update(owner_kind="", owner_name="")
    [change] = calling(bob).get(path).json()["mig_demand"]["changes"]
    assert (change["nodes"], change["nodes_staying"]) == ([], 2)
