import pytest
from django.core.management import call_command

from fleet.models import Node, Pool
from fleet.pools.suggestions import suggest
from fleet.segments.facets import BY_KEY
from fleet.segments.selector_offers import offer
from tests import make

pytestmark = pytest.mark.django_db

PRODUCT, ZONE = "nvidia.com/gpu.product", "topology.kubernetes.io/zone"


def a_gpu_node(cluster, product: str, *, label: str = "", zone: str = "", **given):
    labels = {PRODUCT: label or product} | ({ZONE: zone} if zone else {})
    return make.a_node(cluster, gpu_product=product, labels=labels | given.pop("labels", {}), zone=zone, **given)


def test_one_product_under_several_labels_is_one_pool():
    cluster = make.a_cluster()
    for label in ("NVIDIA-H200", "NVIDIA-H200-SHARED", "NVIDIA-H200-MIG-1g.18gb"):
        a_gpu_node(cluster, "NVIDIA-H200", label=label)

    (found,) = suggest(cluster)

    assert found.selector == f"{PRODUCT} in (NVIDIA-H200,NVIDIA-H200-MIG-1g.18gb,NVIDIA-H200-SHARED)"
    assert (found.name, found.nodes, found.gpus, found.unpooled) == ("h200", 3, 24, 3)
    assert found.reason == "3 nodes with NVIDIA-H200."


def test_a_product_is_cut_where_its_nodes_differ_and_not_where_they_are_alike():
    cluster = make.a_cluster()
    a_gpu_node(cluster, "NVIDIA-H200", zone="a")
    a_gpu_node(cluster, "NVIDIA-H200", zone="b")
    a_gpu_node(cluster, "NVIDIA-L40S", zone="a")

    found = {each.name: each for each in suggest(cluster)}

    assert set(found) == {"h200-a", "h200-b", "l40s"}
    assert found["h200-a"].selector == f"{PRODUCT}=NVIDIA-H200,{ZONE}=a"
    assert found["h200-a"].reason == "1 node with NVIDIA-H200, zone a: nodes of this product differ in zone."
    assert found["l40s"].selector == f"{PRODUCT}=NVIDIA-L40S"


def test_a_part_that_no_label_names_is_not_cut_off():
    cluster = make.a_cluster()
    a_gpu_node(cluster, "NVIDIA-H200", zone="a", capacity_type="spot")
    a_gpu_node(cluster, "NVIDIA-H200", zone="b", capacity_type="on-demand")

    assert [each.selector for each in suggest(cluster)] == [
        f"{PRODUCT}=NVIDIA-H200,{ZONE}=a",
        f"{PRODUCT}=NVIDIA-H200,{ZONE}=b",
    ]


def test_capacity_is_told_by_whichever_label_tells_it():
    cluster = make.a_cluster()
    key = "eks.amazonaws.com/capacityType"
    a_gpu_node(cluster, "NVIDIA-H200", capacity_type="spot", labels={key: "SPOT"})
    a_gpu_node(cluster, "NVIDIA-H200", capacity_type="on-demand", labels={key: "ON_DEMAND"})

    assert {each.selector for each in suggest(cluster)} == {
        f"{PRODUCT}=NVIDIA-H200,{key}=SPOT",
        f"{PRODUCT}=NVIDIA-H200,{key}=ON_DEMAND",
    }


def test_what_has_its_pool_is_not_suggested_again():
    cluster = make.a_cluster()
    pool = make.a_pool(cluster)
    a_gpu_node(cluster, "NVIDIA-H200", pool=pool)
    a_gpu_node(cluster, "NVIDIA-L40S")

    by_name = {each.name: each for each in suggest(cluster)}

    assert not by_name["h200"].is_needed
    assert by_name["h200"].pools == [pool]
    assert by_name["l40s"].is_needed


def test_what_nobody_has_counted_is_not_none():
    cluster = make.a_cluster()
    a_gpu_node(cluster, "NVIDIA-H200")
    a_gpu_node(cluster, "NVIDIA-H200", gpus=0)
    a_gpu_node(cluster, "NVIDIA-L40S", gpus=0)

    found = {each.name: (each.gpus, each.uncounted) for each in suggest(cluster)}

    assert found == {"h200": (8, 1), "l40s": (None, 1)}


@pytest.mark.parametrize("number", [1, 6])
def test_costs_the_same_queries_whatever_is_there(number, django_assert_num_queries):
    cluster = make.a_cluster()
    for at in range(number):
        a_gpu_node(cluster, f"NVIDIA-{at}")

    with django_assert_num_queries(4):
        suggest(cluster)


class TestAChoiceAsASelector:
    def test_is_what_the_labels_say(self):
        cluster = make.a_cluster()
        a_gpu_node(cluster, "NVIDIA-H200", label="NVIDIA-H200-SHARED", zone="a")
        a_gpu_node(cluster, "NVIDIA-L40S", zone="b")

        found = offer(Node.objects.all(), {"product": ("NVIDIA-H200",), "zone": ("a", "b")})

        assert found.selector == f"{PRODUCT}=NVIDIA-H200-SHARED,{ZONE} in (a,b)"
        assert (found.cluster, found.name, found.why_not) == (cluster, "h200-a-b", ())

    def test_that_nothing_says_is_the_absence_of_a_label(self):
        a_gpu_node(make.a_cluster(), "NVIDIA-H200")

        assert offer(Node.objects.all(), {"zone": ("unknown",)}).selector == f"!{ZONE}"

    def test_leaves_out_nodes_without_gpus(self):
        cluster = make.a_cluster()
        a_gpu_node(cluster, "NVIDIA-H200", zone="a", labels={"nvidia.com/gpu.present": "true"})
        make.a_node(cluster, is_gpu_node=False, gpus=0, gpu_product="", labels={ZONE: "a"}, zone="a")

        assert offer(Node.objects.with_gpus(), {"zone": ("a",)}).selector == f"{ZONE}=a,nvidia.com/gpu.present=true"

    @pytest.mark.parametrize(
        ("key", "value", "words"),
        [
            ("driver_version", "570.172.08", "changes when the node is upgraded"),
            ("os_image", "Ubuntu 24.04.2 LTS", "it comes from the node's status, and no permanent label contains it"),
            ("environment", "no-pool", "it is a property of a pool, not a label of the node"),
        ],
    )
    def test_says_why_it_cannot_be(self, key, value, words):
        a_gpu_node(make.a_cluster(), "NVIDIA-H200")

        found = offer(Node.objects.all(), {key: (value,)})

        (reason,) = found.why_not
        assert (found.selector, found.name) == ("", "")
        assert reason.startswith(BY_KEY[key].title)
        assert words in reason

    def test_is_of_one_cluster(self):
        for name in ("east", "west"):
            a_gpu_node(make.a_cluster(name), "NVIDIA-H200")

        assert (
            "A pool belongs to one cluster, and these nodes belong to several"
            in offer(Node.objects.all(), {"product": ("NVIDIA-H200",)}).why_not[0]
        )
        assert offer(Node.objects.all(), {"product": ("NVIDIA-H200",), "cluster": ("east",)}).cluster.name == "east"


def test_the_command_makes_what_is_missing(capsys):
    cluster = make.a_cluster("east")
    a_gpu_node(cluster, "NVIDIA-H200", label="NVIDIA-H200-SHARED")
    make.a_node(cluster, gpu_product="", labels={})

    call_command("suggest_pools", "east")
    assert not Pool.objects.exists()
    call_command("suggest_pools", "east", "--create")
    call_command("suggest_pools", "east", "--create")

    said = capsys.readouterr().out
    assert "--create adds pool h200 with selector nvidia.com/gpu.product=NVIDIA-H200-SHARED" in said
    assert "1 GPU node does not name its product" in said
    assert Pool.objects.get().nodes.count() == 1
