import pytest
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from fleet.allocation.counters import recount
from fleet.allocation.tally import read_alike
from fleet.models import Node, Pool
from fleet.models.state_column import LACKS_UNITS
from fleet.states.node import NodeState
from fleet.web.filters import NodeFilter
from tests import make
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def found(query: str) -> list[str]:
    return [
        node.name for node in NodeFilter.read(QueryDict(query)).narrow(Node.objects.all(), pools=Pool.objects.all())
    ]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("q=alpha", ["alpha"]),
        ("q=zone%3Da", ["alpha"]),
        ("q=!zone", ["beta", "gamma"]),
        ("driver=580.95.05", ["beta"]),
        ("driver=unknown", ["gamma"]),
        ("state=cordoned", ["beta"]),
        ("faults=1", ["gamma"]),
        ("held=1", ["alpha"]),
        ("pool=east/h200", ["alpha"]),
        ("pool=none", ["gamma"]),
        ("pool=several", ["beta"]),
        ("cluster=west", []),
        ("product=NVIDIA-H200", ["gamma", "beta", "alpha"]),
        ("state=rubbish", []),
    ],
)
def test_finds(query, names):
    cluster = make.a_cluster("east")
    pool, other = make.a_pool(cluster, "h200"), make.a_pool(cluster, "other")
    make.a_node(cluster, "alpha", pool=pool, labels={"zone": "a"}, is_held=True)
    beta = make.a_node(cluster, "beta", pool=other, driver_version="580.95.05", is_unschedulable=True, labels={})
    beta.pools.add(make.a_pool(cluster, "third"))
    make.a_node(cluster, "gamma", driver_version="", is_ready=False, labels={})

    assert sorted(found(query)) == sorted(names)
    recount(cluster.pk)
    counted = NodeFilter.read(QueryDict(query)).count_in(read_alike(), {"east": cluster.pk}, pools=Pool.objects.all())
    assert counted == (None if query.startswith("q=") else len(names))


@pytest.mark.parametrize(
    ("query", "names"),
    [("", ["says-it", "silent", "never"]), ("driver=570.172.08", ["says-it"]), ("driver=unknown", ["silent", "never"])],
)
def test_a_node_whose_driver_label_is_gone_is_found_as_unknown(query, names):
    cluster = make.a_cluster("east")
    make.a_node(cluster, "says-it")
    make.a_node(cluster, "silent", driver_unknown_since=make.NOON)
    make.a_node(cluster, "never", driver_version="")
    recount(cluster.pk)

    assert sorted(found(query)) == sorted(names)
    wanted = NodeFilter.read(QueryDict(query))
    assert wanted.count_in(read_alike(), {"east": cluster.pk}, pools=Pool.objects.all()) == len(names)


def test_in_the_order_of_drivers_whose_label_is_gone_stands_with_who_never_said_it():
    cluster = make.a_cluster("east")
    make.a_node(cluster, "a-new", driver_version="580.95.05")
    make.a_node(cluster, "b-old", driver_version="570.172.08")
    make.a_node(cluster, "c-silent", driver_version="580.95.05", driver_unknown_since=make.NOON)
    make.a_node(cluster, "d-never", driver_version="")

    assert found("sort=driver") == ["c-silent", "d-never", "b-old", "a-new"]


def test_a_version_that_no_node_names_any_more_stays_chosen():
    cluster = make.a_cluster("east")
    make.a_node(cluster, driver_unknown_since=make.NOON)
    recount(cluster.pk)

    html = visiting(make.a_user(role="viewer")).get("/?driver_version=570.172.08").content.decode()

    assert "<option selected>570.172.08</option>" in html


def test_a_filter_by_a_pool_that_is_not_seen_finds_none_of_the_nodes_that_are():
    """Of a node that two pools claim, it would tell that there is the other."""
    cluster = make.a_cluster("east")
    mine = make.a_pool(cluster, "mine")
    make.a_node(cluster, "alpha", pool=mine).pools.add(make.a_pool(cluster, "secret"))
    recount(cluster.pk)
    pat = make.a_user("pat", role="viewer", on=mine)
    pools, nodes = Pool.objects.visible_to(pat), Node.objects.visible_to(pat)

    for name, number in (("mine", 1), ("secret", 0)):
        wanted = NodeFilter.read(QueryDict(f"pool=east/{name}"))
        assert wanted.narrow(nodes, pools=pools).count() == number
        assert wanted.count_in(read_alike(pat), {"east": cluster.pk}, pools=pools) == number
        assert ("alpha" in page(visiting(pat), f"/parts/fleet/nodes?pool=east/{name}").text) == bool(number)


def test_the_worst_comes_first():
    cluster = make.a_cluster()
    make.a_node(cluster, "a-fine")
    make.a_node(cluster, "b-changing", upgrade_state="drain-required")
    make.a_node(cluster, "c-down", is_ready=False)
    make.a_node(cluster, "d-short", gpu_allocatable=7)

    assert found("") == ["c-down", "d-short", "b-changing", "a-fine"]


def test_of_one_state_those_with_critical_findings_come_first():
    cluster = make.a_cluster()
    make.a_node(cluster, "a-warned", unresolved=9)
    make.a_node(cluster, "b-sick", unresolved=1, critical=1)
    make.a_node(cluster, "c-sicker", unresolved=2, critical=2)

    assert found("") == ["c-sicker", "b-sick", "a-warned"]


class TestTheDatabaseNamesAState(TestCase):
    """`Node.state` and `Node.gpus_missing` are Python's, the columns are the database's."""

    @given(
        is_ready=st.sampled_from([True, False, None]),
        is_unschedulable=st.booleans(),
        is_held=st.booleans(),
        upgrade_state=st.sampled_from(["", "upgrade-done", "upgrade-required", "upgrade-failed", "drain-required"]),
        gpu_allocatable=st.sampled_from([None, 0, 7, 8]),
        gpu_expected=st.sampled_from([None, 8]),
        mig_config_state=st.sampled_from(["", "pending", "rebooting", "success", "failed"]),
        mig_is_overdue=st.booleans(),
        slices_expected=st.sampled_from([0, 7]),
        slices_allocatable=st.sampled_from([0, 7]),
        shares_expected=st.sampled_from([0, 4]),
        shares_allocatable=st.sampled_from([0, 4]),
        unresolved=st.sampled_from([0, 2]),
    )
    def test_as_the_rule_does(self, **given):
        node = make.a_node(make.a_cluster(), gpus=0, **given)

        (code,) = Node.objects.values_list("state_code", flat=True)
        assert NodeState(code) is node.state
        assert Node.objects.filter(LACKS_UNITS).exists() is bool(node.gpus_missing)
        assert Node.objects.exclude(LACKS_UNITS).exists() is not bool(node.gpus_missing)


def test_a_filter_that_finds_nothing_says_which_part_of_it_is_too_much():
    cluster = make.a_cluster()
    make.a_node(cluster, "alpha", driver_version="570.172.08")
    make.a_node(cluster, "beta", driver_version="570.172.08")

    seen = page(visiting(make.a_user(role="viewer")), "/parts/fleet/nodes?driver=999&q=alpha")

    assert "0 of 2 GPU nodes match" in seen.text
    assert "Without the driver : 1 node" in seen.text
    assert "Clear the filter" in seen.text


def test_the_url_holds_the_filter():
    client = visiting(make.a_user(role="viewer"))
    make.a_node(make.a_cluster(), "alpha")

    response = client.get(
        "/parts/fleet/nodes?q=alp&driver=&faults=", headers={"HX-Request": "true", "HX-Trigger": "filters"}
    )

    assert response["HX-Push-Url"] == "/?q=alp"


def test_pages_keep_the_filter():
    cluster = make.a_cluster()
    for _ in range(51):
        make.a_node(cluster, gpus=0)

    seen = page(visiting(make.a_user(role="viewer")), "/?product=NVIDIA-H200")

    assert "/?product=NVIDIA-H200&page=2#nodes" in seen.links
