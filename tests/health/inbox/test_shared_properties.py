"""Failing nodes outside of a plan: what they share is named, with its counts, and nothing of two nodes alone."""

import pytest

from fleet.racks import rack_labels
from gpu.labels import GPU_CLIQUE
from tests import make
from tests.callers import calling
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
OLD, NEW = "5.15.0-151-generic", "6.8.0-64-generic"


@pytest.fixture
def nodes():
    cluster = make.a_cluster("prod")
    return [make.a_node(cluster, f"gpu-{n}", kernel=NEW if n < 5 else OLD, os_image="Ubuntu") for n in range(12)]


def not_ready(some, **given):
    return [
        make.a_finding(node.cluster, node=node, rule="node-not-ready", fingerprint=node.name, **given) for node in some
    ]


def test_half_of_the_nodes_not_ready_name_their_kernel(nodes):
    bob = make.a_user("bob", role="viewer")
    finding, *_ = not_ready(nodes[:5])

    told = calling(bob).get(f"/api/v1/findings/{finding.pk}").json()
    seen = page(visiting(bob), f"/findings?finding={finding.pk}").text

    first = told["shared"]["suspects"][0]
    assert first["properties"] == [{"name": "kernel", "value": NEW}]
    assert (first["failed_with"], first["good_with"], first["is_cause"]) == (5, 0, True)
    assert "pool" not in told["shared"]["unknown"]
    assert "Probable cause: kernel. kernel 6.8.0-64-generic: on 5 of 5 failed nodes and 0 of 7 good nodes." in seen
    assert "Probable cause: kernel" in told["markdown"]


def test_the_rack_is_compared_where_a_label_names_it(nodes):
    bob = calling(make.a_user("bob", role="viewer"))
    finding, *_ = not_ready(nodes[:5])
    before = bob.get(f"/api/v1/findings/{finding.pk}").json()["shared"]
    make.a_pool(nodes[0].cluster, "gpu", spread_label="dc.example.com/rack")
    make.a_pool(nodes[0].cluster, "clique", spread_label=GPU_CLIQUE)  # compared as the NVLink domain
    for number, node in enumerate(nodes):
        node.kernel, node.labels = OLD, {**node.labels, "dc.example.com/rack": "r1" if number < 5 else "r2"}
        node.save(update_fields=["kernel", "labels"])

    told = bob.get(f"/api/v1/findings/{finding.pk}").json()["shared"]

    assert "rack" not in before["unknown"]
    assert told["suspects"][0]["properties"] == [{"name": "rack", "value": "r1"}]
    assert GPU_CLIQUE not in rack_labels(nodes[0].cluster_id)


def test_one_node_a_cluster_without_good_nodes_and_another_code_name_nothing(nodes):
    (alone,) = not_ready(nodes[:1])
    everywhere = [
        make.a_finding(node.cluster, node=node, rule="operand-down", fingerprint=f"o-{node.name}") for node in nodes
    ]
    xids = [
        make.a_finding(node.cluster, node=node, rule="gpu-xid", fingerprint=f"x-{at}", facts={"xid": 79 + at})
        for at, node in enumerate(nodes[:2])
    ]
    bob = calling(make.a_user("bob", role="viewer"))

    shared = [bob.get(f"/api/v1/findings/{one.pk}").json()["shared"] for one in (alone, everywhere[0], xids[0])]

    assert shared == [None, None, None]
