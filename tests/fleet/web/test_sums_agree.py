"""Every page and every answer of the API counts the same GPUs: parts add up to the whole."""

from datetime import timedelta

import pytest

from fleet.allocation.tally import read_alike
from fleet.models import Node
from fleet.states.node import FAULTS
from fleet.web.summary import cluster_lines, freshness_by_cluster, read_fleet
from people.models import User
from tests import make
from tests.fleet.kinds_of_nodes import KINDS, TOTAL, UNCOUNTED, a_node_of, by_use
from tests.fleet.map_rasters import read_map
from tests.fleet.reading import read_as
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
POOLED = ("whole", "time-slicing", "mig-single", "dra", "vgpu")
TWICE = ("whole", "mig-half")
BOTH = set(POOLED) | set(TWICE)


@pytest.fixture
def viewer():
    return visiting(make.a_user(role="admin"))


@pytest.fixture
def fleet():
    """Two clusters of every kind of node, one of them not seen any more; pools that overlap, and nodes in none."""
    clusters = [make.a_cluster("east"), make.a_cluster("west", seen_at=NOON - timedelta(hours=1))]
    pools = [make.a_pool(clusters[0], "first"), make.a_pool(clusters[0], "second")]
    for cluster in clusters:
        for kind in KINDS:
            node = a_node_of(cluster, kind)
            if cluster is clusters[0]:
                node.pools.set([pool for pool, names in zip(pools, (POOLED, TWICE), strict=True) if kind in names])
    return clusters, pools


def test_a_cluster_that_is_added_while_a_page_is_read_is_not_on_it_yet():
    user = make.a_user(role="admin")
    east = a_node_of(make.a_cluster("east"), "whole")
    first = make.a_pool(east.cluster, "first")
    east.pools.set([first])
    heard = freshness_by_cluster(cluster_lines(user, now=NOON))
    west = a_node_of(make.a_cluster("west"), "whole")
    west.pools.set([make.a_pool(west.cluster, "second")])
    make.counted(user)

    read = read_fleet(user, read_alike(user), heard)

    assert [line.pool for line in read.pools] == [first]
    assert (read.whole.nodes, read.misassigned) == (1, {"none": 0, "several": 0})


def counts(viewer, what: str) -> list[dict]:
    return [row["counts"] for row in viewer.get(f"/api/v1/{what}").json()["results"]]


def uses_of(told: dict[str, int]) -> dict[str, int]:
    return {use: number for use, number in told.items() if number}


@pytest.mark.parametrize("kind", KINDS)
def test_a_node_has_the_gpus_that_are_in_it(viewer, kind):
    node = a_node_of(make.a_cluster(), kind)
    expected = KINDS[kind][2]

    (row,) = viewer.get("/api/v1/nodes").json()["results"]
    seen = page(viewer, f"/nodes/{node.pk}").text

    assert uses_of(row["physical_gpus_by_use"]) == expected
    assert row["physical_gpus"] == (None if kind in UNCOUNTED else sum(expected.values()))
    assert (f"{sum(expected.values())} GPU" in seen) == bool(expected)


def test_the_api_counts_clusters_pools_and_segments_alike(viewer, fleet):
    for cluster in counts(viewer, "clusters"):
        assert (cluster["physical_gpus"], cluster["uncounted_nodes"]) == (TOTAL, len(UNCOUNTED))
        assert uses_of(cluster["physical_gpus_by_use"]) == by_use()
    first, second = counts(viewer, "pools")
    assert (first["physical_gpus"], first["uncounted_nodes"]) == (sum(by_use(*POOLED).values()), 1)
    assert uses_of(second["physical_gpus_by_use"]) == by_use(*TWICE)
    segments = viewer.get("/api/v1/segments").json()
    assert segments["gpus"] == 2 * TOTAL
    for facet in segments["facets"]:
        assert sum(value["gpus"] for value in facet["values"]) == 2 * TOTAL, facet["facet"]


def test_the_fleet_is_what_its_pools_and_the_rest_add_up_to(viewer, fleet):
    read = read_as(User.objects.get())
    pools, unpooled, overlap = [line.tally for line in read.pools], read.unpooled.tally, read.overlap.tally

    for number in ("gpu_nodes", "faulty", "well", "held"):
        parts = sum(getattr(sums, number) for sums in pools)
        assert getattr(read.whole, number) == parts + getattr(unpooled, number) - getattr(overlap, number)
    parts = sum(sums.physical.total for sums in pools) + unpooled.physical.total - overlap.physical.total
    assert read.whole.physical.total == parts == 2 * TOTAL
    assert read.whole.physical.uncounted == 2 * len(UNCOUNTED)
    assert overlap.gpu_nodes == 1
    assert read.misassigned == {"none": 2 * (len(KINDS) - 1) - len(BOTH), "several": 1}


@pytest.fixture
def troubled(fleet):
    """In `second` a node whose MIG layout is being changed, and one that is cordoned."""
    nodes = Node.objects.filter(cluster=fleet[0][0])
    nodes.filter(name="mig-half").update(mig_config_state="pending", gpu_allocatable=0, slices_allocatable=0)
    nodes.filter(name="whole").update(is_unschedulable=True, gpu_allocatable=7)
    nodes.filter(name="time-slicing").update(shares_allocatable=28)
    return make.counted(fleet)


def test_what_is_expected_can_be_had_or_is_missing_or_away(viewer, troubled):
    read = read_as(User.objects.get())
    told = [*counts(viewer, "clusters"), *counts(viewer, "pools")]

    for row in told:
        for kind in ("gpus", "slices", "shares"):
            parts = [row[f"{kind}_{part}"] for part in ("allocatable", "missing", "away")]
            assert row[f"{kind}_expected"] == sum(parts), (kind, parts)
    for sums in (read.whole, *(line.tally for line in read.pools), read.unpooled.tally, read.overlap.tally):
        for amount in (sums.gpus, sums.slices, sums.shares):
            parts = (amount.allocated, amount.free, amount.unusable, amount.unread, amount.missing, amount.away)
            assert amount.expected == sum(part or 0 for part in parts)
        assert sums.gpu_nodes == sum(sums.by_state.values()) == sum(each.nodes for each in sums.driver_versions)
        assert sums.gpu_nodes == sums.well + sums.faulty + sums.changing + sums.reconfiguring + sums.cordoned


def test_pages_say_of_each_gpu_slice_and_share_what_became_of_it(viewer, troubled):
    second = troubled[1][1]

    pool, table, whole = (page(viewer, path).text for path in (f"/pools/{second.pk}", "/pools", "/"))

    assert "0 of 12 whole GPUs allocated, 0 free, 7 free, not usable" in pool
    assert "1 whole GPU missing" in pool
    assert "4 whole GPUs away" in pool
    assert "0 of 28 slices allocated, 0 free" in pool
    assert "28 slices away" in pool
    row = table.split("second east")[1].split("no label")[0]
    assert "0 of 12 whole GPUs 0 of 28 slices 0 +7 not usable 0 1 +4 away 0 +28 away" in row
    assert "28 away" in whole.split("slices allocated")[1].split("shares allocated")[0]


def test_pages_say_physical_gpus_first_and_then_what_is_made_of_them(viewer, fleet):
    clusters, pools = fleet
    words = {"whole": "whole", "mig": "MIG", "time_slicing": "time-slicing", "mps": "MPS",
             "virtual": "for virtual machines", "not_offered": "not offered"}  # fmt: skip
    seen = {
        "/": (2 * TOTAL, {use: 2 * number for use, number in by_use().items()}),
        "/parts/fleet/overview": (2 * TOTAL, {use: 2 * number for use, number in by_use().items()}),
        f"/clusters/{clusters[0].pk}": (TOTAL, by_use()),
        f"/pools/{pools[0].pk}": (sum(by_use(*POOLED).values()), by_use(*POOLED)),
        "/segments": (2 * TOTAL, {use: 2 * number for use, number in by_use().items()}),
    }

    for path, (total, uses) in seen.items():
        said = " · ".join(f"{uses[use]} {title}" for use, title in words.items() if use in uses)
        assert f"{total} GPUs {said}" in page(viewer, path).text, path


def test_the_segments_never_count_shared_gpus_as_none(viewer, fleet):
    sharing = next(
        facet for facet in viewer.get("/api/v1/segments").json()["facets"] if facet["facet"] == "sharing"
    )  # fmt: skip
    found = {value["value"]: value["gpus"] for value in sharing["values"]}

    assert (found["time-slicing"], found["mps"], found["mig-single"], found["mig-mixed"]) == (32, 16, 16, 16)


def test_the_map_draws_a_cell_for_every_gpu(viewer, fleet):
    drawn = read_map(viewer)

    assert sum(len(node.gpus) for node in drawn) == 2 * TOTAL
    assert sum(node.whole[2] for node in drawn) == 2 * by_use()["whole"]


def test_the_map_counts_as_the_line_above_it_does(viewer, fleet):
    read = read_as(User.objects.get()).whole
    drawn = read_map(viewer)

    whole = [sum(node.whole[at] for node in drawn) for at in range(3)]
    assert whole == [read.gpus.allocated, read.gpus.allocatable, read.gpus.expected]
    assert sum(len(node.gpus) for node in drawn) == read.physical.total
    assert (len(drawn), sum(node.code in FAULTS for node in drawn)) == (read.gpu_nodes, read.faulty)
    assert sum(node.is_held for node in drawn) == read.held
    parts = [sum(node.parts[at] for node in drawn if node.parts) for at in range(3)]
    assert parts[2] == read.slices.expected + read.shares.expected


def test_a_preview_of_a_pool_counts_all_its_gpus(viewer, fleet):
    cluster = fleet[0][0]
    asked = {"cluster": cluster.pk, "selector": "nvidia.com/gpu.present=true"}

    found = viewer.post("/api/v1/pool-previews", asked, content_type="application/json").json()

    labelled = ("whole", "mig-single", "mig-half", "time-slicing", "renamed", "mps", "no-plugin", "nobody-says")
    assert (found["count"], found["gpus"]) == (len(labelled), sum(by_use(*labelled).values()))


def test_metrics_count_the_same(viewer, fleet):
    text = viewer.get("/metrics").content.decode()

    lines = [line for line in text.splitlines() if line.startswith('quarterdeck_gpus{cluster="east"')]
    assert sum(float(line.rpartition(" ")[2]) for line in lines) == TOTAL
    assert 'quarterdeck_gpus{cluster="east",use="time_slicing"} 16.0' in lines


LOST = {"gpu_allocatable": 6, "allocatable": {"nvidia.com/gpu": 6}, "gpu_allocated": 8}


def test_gpus_that_are_lost_are_missing_and_not_allocated_though_pods_hold_them(viewer):
    cluster = make.a_cluster()
    a_node_of(cluster, "whole", **LOST)

    seen = page(viewer, "/parts/fleet/overview").text
    (node,) = read_map(viewer)
    (counted,) = counts(viewer, "clusters")

    assert "6 allocated 0 free 2 missing" in seen
    assert node.whole == (6, 6, 8)
    assert [counted[f"gpus_{what}"] for what in ("expected", "allocated", "missing")] == [8, 6, 2]
    assert "6 of 6 2 missing, 2 allocated to pods" in page(viewer, "/parts/fleet/nodes").text


@pytest.mark.parametrize("kind", ["mig-single", "time-slicing"])
def test_slices_and_shares_that_are_lost_are_missing_too(viewer, kind):
    unit = "slices" if kind == "mig-single" else "shares"
    node = a_node_of(make.a_cluster(), kind)
    number = getattr(node, f"{unit}_expected")
    a_seventh = {f"{unit}_allocatable": number - 4, f"{unit}_allocated": number}
    type(node).objects.filter(pk=node.pk).update(**a_seventh)

    (drawn,) = read_map(viewer)

    assert drawn.parts == (number - 4, number - 4, number)
    assert f"{number - 4} of {number} {unit} allocated 4 missing" in page(viewer, "/parts/fleet/overview").text
