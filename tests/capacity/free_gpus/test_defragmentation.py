"""Proposals to defragment a pool: applied in a simulation, each frees what it says."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.free_gpus.defragmentation import SIZES, MovablePod, PackedNode, Proposal, propose
from capacity.free_gpus.defragmentation_report import defragmentation_of_pool
from fleet.models import Bookmark, DisruptionBudget, Pod, Workload
from kube.resources import DISRUPTION_BUDGETS, NODES, PODS
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

PODS_ON_A_NODE = st.lists(
    st.tuples(st.sampled_from([1, 1, 2, 4]), st.integers(0, 9), st.sets(st.integers(0, 1), max_size=1)), max_size=4
)
FLEETS = st.lists(st.tuples(PODS_ON_A_NODE, st.booleans(), st.integers(0, 12)), max_size=12)


def fleet_of(drawn) -> list[PackedNode]:
    nodes, number = [], 0
    for place, (pods, is_source, cpu) in enumerate(drawn):
        there = []
        for gpus, hours, budgets in pods:
            if sum(pod.gpus for pod in there) + gpus <= 8:
                number += 1
                there.append(MovablePod(number, f"a/p-{number}", "Job a/j", gpus, 3, 1, hours, budgets=tuple(budgets)))
        free = 8 - sum(pod.gpus for pod in there)
        nodes.append(PackedNode(place, f"n-{place}", "h100", 8, free, cpu, 9, there, is_source))
    return nodes


def check(nodes: list[PackedNode], proposal: Proposal, budgets: dict[int, int]) -> None:
    """Applies the moves, without the product's code, and compares the room with the proposal."""
    by_name = {node.name: node for node in nodes}
    free = {node.name: node.free for node in nodes}
    cpu = {node.name: node.cpu_m for node in nodes}
    moved, spent = Counter[int](), Counter[int]()
    for emptied in proposal.nodes:
        source = by_name[emptied.name]
        assert source.is_source
        assert {move.pod.key for move in emptied.moves} == {pod.key for pod in source.pods}
        for move in emptied.moves:
            moved[move.pod.key] += 1
            spent.update(move.pod.budgets)
            free[source.name] += move.pod.gpus
            free[move.target] -= move.pod.gpus
            cpu[move.target] -= move.pod.cpu_m
    emptied_names = {node.name for node in proposal.nodes}
    assert not emptied_names & {move.target for move in proposal.moves}
    assert set(moved.values()) <= {1}
    assert min(free.values(), default=0) >= 0
    assert all(cpu[name] >= 0 for name in {move.target for move in proposal.moves})
    assert all(number <= budgets.get(budget, 0) for budget, number in spent.items())
    assert proposal.fits_now == sum(node.free // proposal.size for node in nodes)
    assert proposal.fits_after == sum(gpus // proposal.size for gpus in free.values())
    assert proposal.fits_after > proposal.fits_now or not proposal.nodes


@given(drawn=FLEETS, size=st.sampled_from(SIZES), allowed=st.integers(0, 3))
def test_a_proposal_frees_what_it_says(drawn, size, allowed):
    nodes, budgets = fleet_of(drawn), {0: allowed, 1: 0}

    check(nodes, propose(nodes, size, budgets), budgets)


def test_a_proposal_for_two_half_empty_nodes():
    nodes = fleet_of([([(4, 5, set())], True, 9), ([(4, 1, set())], True, 9)])

    found = propose(nodes, 8, {})

    assert (found.fits_now, found.fits_after) == (0, 1)
    assert [(node.name, [move.target for move in node.moves]) for node in found.nodes] == [("n-1", ["n-0"])]
    assert (found.gpus, found.gpu_hours) == (4, 1)  # the cheaper of both
    check(nodes, found, {})


def test_pods_move_only_between_nodes_of_one_kind():
    half = fleet_of([([(4, 0, set())], True, 9)])[0]
    other = PackedNode(9, "other", "a100", 8, 4, 9, 9)

    assert propose([half, other], 8, {}).nodes == []


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


@pytest.fixture
def pool():
    cluster = make.a_cluster("east")
    pool = make.a_pool(cluster, "h200")
    for kind in (NODES, PODS, DISRUPTION_BUDGETS):
        Bookmark.objects.update_or_create(
            cluster=cluster, kind=kind.name, defaults={"state_since": NOON, "listed_at": NOON, "last_seen_at": NOON}
        )
    for number in range(2):
        node = make.a_node(
            cluster, f"gpu-{number}", pool=pool, gpu_allocatable=8, gpus_free=4, gpu_allocated=4,
            cpu_allocatable_m=64_000, memory_allocatable_bytes=2**40,
        )  # fmt: skip
        make.a_pod(
            node, f"train-{number}", namespace="team-a", gpus=4, owner_kind="Job", owner_name=f"train-{number}",
            started_at=NOON - timedelta(hours=3 + number), labels={"app": "train"},
            ready_since=NOON - timedelta(hours=2 + number, minutes=30),
        )  # fmt: skip
    return pool


def proposals(pool, user):
    report = defragmentation_of_pool(pool, user, now=NOON)
    assert report is not None
    return {proposal.size: proposal for proposal in report.proposals}


@pytest.mark.django_db
@pytest.mark.sqlite
def test_a_pool_proposes_the_cheapest_drain(pool, bob, now):
    found = proposals(pool, bob)[8]

    assert [(node.name, [move.target for move in node.moves]) for node in found.nodes] == [("gpu-0", ["gpu-1"])]
    assert (found.fits_now, found.fits_after, found.gpu_hours, found.jobs) == (0, 1, 12.0, ["Job team-a/train-0"])
    answer = calling(bob).get(f"/api/v1/pools/{pool.pk}/defragmentation").json()["defragmentation"]
    assert answer["proposals"][2]["nodes"][0]["moves"][0]["target"] == "gpu-1"
    assert (answer["proposals"][2]["gpus_gained"], answer["proposals"][2]["nodes"][0]["gain"]) == (8, 1)
    assert answer["proposals"][2]["gpu_hours_loading"] == 2.0, "4 GPUs, ready after half an hour"
    shown = page(visiting(bob), f"/parts/pools/{pool.pk}/defragmentation")
    assert f"/operations/new?kind=drain&nodes={found.nodes[0].key}" in shown.links
    text = visiting(bob).get(f"/pools/{pool.pk}/defragmentation.csv").content.decode()
    assert "8,0,1,gpu-0,team-a/train-0,Job team-a/train-0,4,12.0,2.0,gpu-1" in text.splitlines()


@pytest.mark.django_db
def test_rows_of_a_cluster_that_is_not_seen_have_their_time(pool, bob, now):
    seen = NOON - timedelta(hours=2)
    path = f"/api/v1/pools/{pool.pk}/defragmentation"
    assert calling(bob).get(path).json()["defragmentation"]["as_of"] is None
    pool.cluster.bookmarks.update(last_seen_at=seen)

    assert calling(bob).get(path).json()["defragmentation"]["as_of"] == f"{seen:%Y-%m-%dT%H:%M:%SZ}"
    assert "as last seen 2 h ago" in page(visiting(bob), f"/parts/pools/{pool.pk}/defragmentation").text


@pytest.mark.django_db
@pytest.mark.parametrize(
    "given",
    [
        {"owner_kind": "", "owner_name": ""},  # nothing starts it again
        {"owner_name": "gang"},  # one job on both nodes
        {"claims": ["gpu"]},
        {"deleted_at": NOON},
    ],
)
def test_a_pod_that_must_stay_keeps_its_node(pool, bob, given):
    Pod.objects.update(**given)

    assert proposals(pool, bob)[8].nodes == []


@pytest.mark.django_db
@pytest.mark.parametrize("is_of_one_set", [True, False])
def test_a_pod_of_a_job_set_on_other_nodes_of_the_cluster_keeps_its_node(pool, bob, is_of_one_set):
    elsewhere = make.a_node(pool.cluster, "other")
    make.a_pod(elsewhere, "train-9", namespace="team-a", gpus=4, owner_kind="Job", owner_name="train-9")
    for pod in Pod.objects.all():
        Pod.objects.filter(pk=pod.pk).update(owner_uid=f"job-{pod.name}")
        name = "llama" if is_of_one_set else f"set-{pod.name}"
        Workload.objects.create(
            cluster=pool.cluster, uid=f"job-{pod.name}", kind="Job", namespace="team-a", name=pod.owner_name,
            owner_kind="JobSet", owner_name=name, owner_uid=f"uid-{name}", created_at=NOON, changed_at=NOON,
        )  # fmt: skip
    Pod.objects.filter(name="train-1").update(claims=["gpu"])  # only one of both could move

    found = proposals(pool, bob)[8]

    assert found.jobs == ([] if is_of_one_set else ["JobSet team-a/set-train-0"])


@pytest.mark.django_db
@pytest.mark.parametrize(("allowed", "nodes"), [(None, 0), (0, 0), (1, 1)])
def test_a_budget_without_room_keeps_its_pods(pool, bob, allowed, nodes):
    DisruptionBudget.objects.create(
        cluster=pool.cluster, uid="b", namespace="team-a", name="b", changed_at=NOON,
        disruptions_allowed=allowed, selector={"matchLabels": {"app": "train"}},
    )  # fmt: skip

    assert len(proposals(pool, bob)[8].nodes) == nodes


@pytest.mark.django_db
def test_what_was_never_read_gives_no_proposal(pool, bob):
    Bookmark.objects.filter(kind=DISRUPTION_BUDGETS.name).delete()

    assert defragmentation_of_pool(pool, bob, now=NOON) is None
