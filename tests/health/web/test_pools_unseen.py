"""A node that is in two pools: who sees one of them learns the name of that one alone, whatever is said of the node."""

import pytest

from tests import make
from tests.pages import visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
PLACES = (
    "/findings?id={finding}",
    "/findings?finding={finding}",
    "/api/v1/findings/{finding}",
    "/nodes/{node}",
    "/nodes/{node}/gpus/0",
    "/gpus",
    "/parts/nodes/{node}/comparable",
    "/parts/nodes/{node}/gpus/0/comparable",
    "/api/v1/nodes/{node}",
    "/api/v1/nodes/{node}/gpus/0",
    "/api/v1/nodes/{node}/gpus/0/comparable",
    "/api/v1/nodes/{node}/comparable",
    "/api/v1/gpu-health",
)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_who_sees_one_of_them_is_told_of_no_other(place, role):
    cluster = make.a_cluster("north")
    mine, other = make.a_pool(cluster, "pool-of-mine"), make.a_pool(cluster, "pool-unseen")
    node, comparable = make.a_node(cluster, "gpu-001", pool=mine), make.a_node(cluster, "gpu-002", pool=mine)
    for each in (node, comparable):
        each.pools.add(other)
    finding = make.a_finding(cluster, node=node)
    caller = visiting(make.a_user("pia", role=role, on=mine))

    answer = caller.get(place.format(finding=finding.pk, node=node.pk))

    assert answer.status_code == 200
    assert "pool-unseen" not in answer.content.decode()
