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


def test_who_sees_a_pool_only_is_told_of_no_node_that_left():
    cluster = make.a_cluster("north")
    pool = make.a_pool(cluster, "training")
    node = make.a_node(cluster, "gpu-001", pool=pool)
    gone(cluster, "gpu-001", 1)

    text = page(visiting(make.a_user(role="viewer", on=pool)), f"/nodes/{node.pk}").text

    assert "Another machine" not in text
