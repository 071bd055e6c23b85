"""A node of a name that another machine had leads to how that one was, for those who may see it."""

from datetime import timedelta

import pytest

from fleet.models import GoneNode
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def gone(cluster, name: str, number: int):
    at = NOON - timedelta(hours=number)
    return GoneNode.objects.create(node_id=9000 + number, cluster=cluster, uid=f"old-{number}", name=name, gone_at=at)


def test_it_leads_to_the_last_that_had_its_name():
    cluster = make.a_cluster("north")
    node = make.a_node(cluster, "gpu-001", pool=make.a_pool(cluster, "training"))
    gone(cluster, "gpu-001", 2)
    last = gone(cluster, "gpu-001", 1)
    gone(make.a_cluster("south"), "gpu-001", 0)
    gone(cluster, "gpu-002", 3)

    seen = page(visiting(make.a_user(role="viewer")), f"/nodes/{node.pk}")

    assert f"/nodes/{last.node_id}" in seen.links
    assert "Another machine had this name until 11:00:00" in seen.text


def test_who_sees_a_pool_only_sees_a_node_that_was_in_it_when_it_left_and_no_other():
    cluster = make.a_cluster("north")
    pool, other = make.a_pool(cluster, "training"), make.a_pool(cluster, "inference")
    ours, theirs, unpooled = gone(cluster, "gpu-001", 1), gone(cluster, "gpu-002", 2), gone(cluster, "gpu-003", 3)
    ours.pools.set([pool, other])
    theirs.pools.set([other])
    viewer = visiting(make.a_user(role="viewer", on=pool))

    assert "This node left north" in page(viewer, f"/nodes/{ours.node_id}").text
    assert viewer.get(f"/nodes/{theirs.node_id}").status_code == 404
    assert viewer.get(f"/nodes/{unpooled.node_id}").status_code == 404

    for name, is_told in (("gpu-001", True), ("gpu-002", False)):
        node = make.a_node(cluster, name, pool=pool)
        assert ("Another machine" in page(viewer, f"/nodes/{node.pk}").text) is is_told


def test_with_the_pool_goes_the_right_to_see_what_was_in_it():
    cluster = make.a_cluster("north")
    pool = make.a_pool(cluster, "training")
    row = gone(cluster, "gpu-001", 1)
    row.pools.set([pool])
    viewer = visiting(make.a_user(role="viewer", on=pool))
    pool.delete()

    assert viewer.get(f"/nodes/{row.node_id}").status_code in (403, 404)
