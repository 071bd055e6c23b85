"""A pool or a node goes while another writes a row that names it: nobody is refused what they asked for."""

import pytest

from fleet.models import Cluster, Node, Observer, Pool
from fleet.pools.changes import change_pool, create_pool, delete_pool
from fleet.pools.membership_writes import sort_cluster
from tests import make
from tests.locks import while_it_is_written
from tests.make import NOON

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]


@pytest.fixture
def cluster(transactional_db) -> Cluster:
    cluster = make.a_cluster()
    Observer.objects.create(cluster=cluster, epoch=1, lease_until=NOON)
    return cluster


def flush(cluster: Cluster) -> None:
    """What every flush begins with."""
    Observer.keep(cluster.pk, epoch=1, now=NOON, flushed=True)


def test_a_pool_is_deleted_while_a_flush_puts_its_first_node_into_it(cluster):
    pool = make.a_pool(cluster, "late")

    def put_one_in() -> None:
        flush(cluster)
        make.a_node(cluster, pool=pool)

    refusals = while_it_is_written(put_one_in, lambda: delete_pool(Pool.objects.get(pk=pool.pk), actor="ada", now=NOON))

    assert refusals == []
    assert not Pool.objects.exists()
    assert Node.objects.get().pools.count() == 0


def test_the_nodes_of_a_cluster_are_sorted_while_a_pool_is_deleted(cluster):
    node, pool = make.a_node(cluster, labels={"zone": "a"}), make.a_pool(cluster, "late", selector="zone=a")

    refusals = while_it_is_written(lambda: delete_pool(pool, actor="ada", now=NOON), lambda: sort_cluster(cluster.pk))

    assert refusals == []
    assert node.pools.count() == 0


@pytest.mark.parametrize("is_new", [True, False])
def test_a_node_goes_while_somebody_writes_a_pool_that_claims_it(cluster, is_new):
    stays, goes = (make.a_node(cluster, labels={"zone": "a"}) for _ in range(2))
    pool = make.a_pool(cluster, "b", selector="zone=b")

    def lose_it() -> None:
        flush(cluster)
        Node.objects.filter(pk=goes.pk).delete()

    def write_a_pool() -> None:
        if is_new:
            create_pool(cluster=cluster, actor="ada", now=NOON, name="a", selector="zone=a")
        else:
            change_pool(Pool.objects.get(pk=pool.pk), actor="ada", now=NOON, selector="zone=a")

    assert while_it_is_written(lose_it, write_a_pool) == []
    assert list(Pool.objects.get(selector="zone=a").nodes.all()) == [stays]
