"""A person and the observer write the same rows: neither is refused because both wait for each other."""

import pytest

from fleet.models import Node, NodeEvent, Observer, Pool
from fleet.pools.changes import change_pool, create_pool
from tests import make
from tests.locks import while_it_is_written
from tests.make import NOON

pytestmark = pytest.mark.sqlite


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_new", [True, False])
def test_a_flush_that_goes_on_while_somebody_writes_a_pool(is_new):
    """It has the observer's row, and what it writes names the cluster and the pool."""
    cluster = make.a_cluster()
    node, pool = make.a_node(cluster, labels={"zone": "a"}), make.a_pool(cluster, "b", selector="zone=b")
    Observer.objects.create(cluster=cluster, epoch=1, lease_until=NOON)

    def write_a_pool() -> None:
        if is_new:
            create_pool(cluster=cluster, actor="ada", now=NOON, name="a", selector="zone=a")
        else:
            change_pool(Pool.objects.get(pk=pool.pk), actor="ada", now=NOON, selector="zone=a")

    def go_on() -> None:
        make.a_node_event(node)
        Node.pools.through.objects.create(node=make.a_node(cluster), pool=pool)

    refusals = while_it_is_written(
        lambda: Observer.keep(cluster.pk, epoch=1, now=NOON, flushed=True), write_a_pool, go_on
    )

    assert refusals == []
    assert NodeEvent.objects.count() == 1
    assert Pool.objects.get(selector="zone=a").nodes.filter(pk=node.pk).exists()
