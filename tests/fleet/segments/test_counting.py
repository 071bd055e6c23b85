import pytest

from fleet.models import Cluster, Node
from fleet.segments.facet_counts import cross, segments_of
from fleet.segments.facets import BY_KEY, FACETS, narrow
from gpu.resources.layout import HOW
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def segments(choice, **given):
    """Of all nodes, each counted by then."""
    make.counted()
    return segments_of(make.a_user(role="viewer"), choice, **given)


def counted(key: str, **choice: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    facets = segments(choice, axes=[BY_KEY[key]]).facets
    (found,) = [each for each in facets if each.facet.key == key]
    return {each.value: (each.nodes, each.gpus) for each in found.values}


def a_mixed_fleet() -> None:
    east, west = make.a_cluster("east"), make.a_cluster("west")
    make.a_driver_object(east, "policy", kind="ClusterPolicy", operator_version="v25.10.1")
    training = make.a_pool(east, "training", environment="production", workload_class="training")
    spare = make.a_pool(east, "spare")
    make.a_node(east, "a", pool=training, zone="a", sharing="mps", gpu_vendor="nvidia")
    numa = {"feature.node.kubernetes.io/memory-numa": "true"}
    make.a_node(east, "b", pool=training, zone="b", mig_strategy="single", labels=numa)
    make.a_node(east, "c", pool=spare, zone="b", gpus=4, nvlink_domain="uuid.1", driver_version="")
    make.a_node(east, "d", pool=spare, mig_strategy="mixed", sharing="time-slicing").pools.add(training)
    make.a_node(west, "e", gpu_product="NVIDIA-L40S", kernel="5.14.0-570.el9", capacity_type="spot", region="eu")


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("cluster", {"east": (4, 28), "west": (1, 8)}),
        ("environment", {"production": (2, 16), "unknown": (1, 4), "several": (1, 8), "no-pool": (1, 8)}),
        ("workload_class", {"training": (2, 16), "mixed": (1, 4), "several": (1, 8), "no-pool": (1, 8)}),
        ("product", {"NVIDIA-H200": (4, 28), "NVIDIA-L40S": (1, 8)}),
        ("vendor", {"nvidia": (1, 8), "unknown": (4, 28)}),
        ("operator_version", {"v25.10.1": (4, 28), "unknown": (1, 8)}),
        ("driver_version", {"570.172.08": (4, 32), "unknown": (1, 4)}),
        ("zone", {"a": (1, 8), "b": (2, 12), "unknown": (2, 16)}),
        ("capacity_type", {"spot": (1, 8), "unknown": (4, 28)}),
        ("nvlink_domain", {"uuid.1": (1, 4), "unknown": (4, 32)}),
        ("numa", {"true": (1, 8), "unknown": (4, 28)}),
        (
            "sharing",
            {"mps": (1, 8), "mig-single": (1, 8), "none": (2, 12), "mig-mixed+time-slicing": (1, 8)},
        ),
    ],
)
def test_counts_nodes_and_gpus_and_drops_none_that_says_nothing(key, values):
    a_mixed_fleet()

    assert counted(key) == values


def test_an_operator_whose_policy_has_no_labels_says_its_version_itself():
    a_mixed_fleet()
    make.an_operator(Cluster.objects.get(name="west"), operator_version="v24.6.1")

    assert counted("operator_version") == {"v25.10.1": (4, 28), "v24.6.1": (1, 8)}
    assert narrow(Node.objects.all(), {"operator_version": ("v24.6.1",)}).get().name == "e"


def test_a_choice_narrows_the_other_facets_and_not_its_own():
    a_mixed_fleet()

    assert counted("zone", zone=("a",)) == counted("zone")
    assert counted("product", zone=("a", "b")) == {"NVIDIA-H200": (3, 20)}
    assert counted("zone", zone=("a",), product=("NVIDIA-L40S",)) == {"unknown": (1, 8), "a": (0, 0)}


def test_every_value_finds_as_many_nodes_as_it_counts():
    a_mixed_fleet()
    nodes = Node.objects.with_gpus()

    for choice in ({}, {"zone": ("b",)}, {"numa": ("unknown",)}, {"environment": ("several", "production")}):
        for found in segments(choice).facets:
            for each in found.values:
                chosen = {**choice, found.facet.key: (each.value,)}
                assert narrow(nodes, chosen).count() == each.nodes, chosen


def test_a_version_whose_label_is_gone_is_unknown_however_well_it_is_remembered():
    a_mixed_fleet()
    make.a_node(Cluster.objects.get(name="west"), "silent", driver_unknown_since=NOON)
    nodes = Node.objects.with_gpus()

    found = counted("driver_version")

    assert found == {"570.172.08": (4, 32), "unknown": (2, 12)}
    for value, (number, _) in found.items():
        assert narrow(nodes, {"driver_version": (value,)}).count() == number
    assert narrow(nodes, {"driver_version": tuple(found)}).count() == nodes.count()
    assert {"c", "silent"} == {node.name for node in narrow(nodes, {"driver_version": ("unknown",)})}


def test_two_facets_are_crossed():
    a_mixed_fleet()
    groups = segments({}).matching

    table = cross(groups, BY_KEY["product"], BY_KEY["driver_version"], wide=1)

    assert table.heads == ("570.172.08",)
    assert [(line.value, [cell.nodes for cell in line.cells]) for line in table.lines] == [
        ("NVIDIA-H200", [3]),
        ("NVIDIA-L40S", [1]),
    ]
    assert table.unshown == 1


@pytest.mark.parametrize(
    "choice", [{}, {"zone": ("b", "unknown")}, {"environment": ("several", "production"), "sharing": ("none",)}]
)
def test_the_kept_sums_say_what_the_nodes_say(choice):
    """Where a dear facet is asked for nodes are read: what they have beside it is the same."""
    a_mixed_fleet()
    make.a_node(Cluster.objects.get(name="east"), "f", physical_whole=0, physical_mig=8)
    make.a_node(Cluster.objects.get(name="east"), "g", physical_whole=0, physical_gpus=None)
    make.a_node(Cluster.objects.get(name="east"), "h", zone="b", driver_unknown_since=NOON)

    kept, read = segments(choice), segments(choice, axes=[BY_KEY["numa"]])

    assert kept.facets == [each for each in read.facets if each.facet.key != "numa"]
    assert (kept.nodes, kept.gpus, kept.all_nodes) == (read.nodes, read.gpus, read.all_nodes)
    assert kept.physical == read.physical


@pytest.mark.parametrize("number", [1, 20])
def test_costs_the_same_queries_whatever_the_size(number, django_assert_num_queries):
    for at in range(number):
        make.a_node(make.a_cluster(), gpus=0, kernel=f"6.8.{at}")

    make.counted()
    user = make.a_user(role="viewer")

    with django_assert_num_queries(6):
        segments_of(user, {})


def test_what_no_node_says_is_silent():
    make.a_node(make.a_cluster(), zone="a")

    silent = {each.facet.key for each in segments({}).facets if each.is_silent}

    assert {"region", "capacity_type", "nvlink_domain"} <= silent
    assert not silent & {"zone", "kernel", "sharing"}


def test_what_is_chosen_or_has_no_node_left_is_not_called_silent():
    make.a_node(make.a_cluster(), zone="a")

    found = segments({"region": ("eu",)}).facets

    assert not [each.facet.key for each in found if each.is_silent]


def test_every_facet_says_how_a_pool_can_pick_by_it_or_why_not():
    of_the_cluster = {"cluster", "operator_version"}

    assert all(facet.labels or facet.why_no_label or facet.key in of_the_cluster for facet in FACETS)


@pytest.mark.parametrize("how", HOW)
def test_every_way_of_sharing_is_a_value(how):
    make.a_node(make.a_cluster("east"), "a", sharing=how)

    assert counted("sharing") == {how: (1, 8)}
    assert [node.name for node in narrow(Node.objects.all(), {"sharing": (how,)})] == ["a"]


def test_the_values_of_each_facet_and_the_cells_come_to_the_whole():
    a_mixed_fleet()
    for zone in ("a", "z"):
        make.a_node(Cluster.objects.get(name="west"), zone=zone, physical_gpus=None, gpus=0, is_gpu_node=True)

    found = segments({}, axes=[BY_KEY["numa"]])
    cells = [cell for line in cross(found.matching, BY_KEY["zone"], BY_KEY["product"]).lines for cell in line.cells]

    assert (found.nodes, found.gpus, found.uncounted_nodes) == (7, 36, 2)
    for parts in (*(each.values for each in found.facets), cells):
        assert sum(each.nodes for each in parts) == 7
        assert sum(each.gpus or 0 for each in parts) == 36
        assert sum(each.uncounted_nodes for each in parts) == 2
