"""However many nodes enter and leave pools, no transaction is long: a person's halt finds a gap (Z40)."""

from collections.abc import Callable

import pytest

from benchmarks.writes import Writes, watch_writes
from edges.slices import ROWS
from fleet.allocation.counters import recount
from fleet.models import Cluster, Pool
from fleet.pools import membership_writes
from fleet.pools.changes import PoolInUse, change_pool, create_pool, delete_pool
from fleet.pools.files import compare, parse_pool_file, take_over
from fleet.pools.membership_writes import sort_cluster
from people.models import AuditEntry
from tests import make
from tests.make import NOON

MANY = 450
MOST_ROWS = 2 * ROWS  # a slice, its counters and its chunks of the map
BY = {"actor": "ada", "now": NOON}

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]


@pytest.fixture
def cluster() -> Cluster:
    cluster = make.a_cluster("big")
    nodes = (make.unsaved_node(cluster, gpus=0, labels={"zone": "ab"[number % 2]}) for number in range(MANY))
    make.some_nodes(list(nodes))
    recount(cluster.pk)
    return cluster


def written(act: Callable[[], object]) -> Writes:
    with watch_writes() as writes:
        act()
    return writes


def test_a_pool_is_created_changed_and_deleted_in_short_transactions(cluster):
    created = written(lambda: create_pool(cluster=cluster, name="one", selector="zone", **BY))
    pool = Pool.objects.get()
    assert (pool.nodes.count(), pool.is_sorted) == (MANY, True)

    changed = written(lambda: change_pool(pool, selector="!zone", **BY))
    assert pool.nodes.count() == 0
    change_pool(pool, selector="zone", **BY)

    deleted = written(lambda: delete_pool(pool, **BY))
    assert not Pool.objects.exists()
    assert recount(cluster.pk) == 0
    assert max(each.most_rows for each in (created, changed, deleted)) <= MOST_ROWS


def test_a_file_is_imported_in_short_transactions(cluster):
    make.a_pool(cluster, "old", selector="zone")
    make.a_pool(cluster, "b", selector="zone=a")
    sort_cluster(cluster.pk)
    file = parse_pool_file("pools:\n- {name: a, selector: zone=a}\n- {name: b, selector: zone=b}\n")

    imported = written(lambda: take_over(compare(cluster, file.entries, prune=True), **BY))

    assert {pool.name: pool.nodes.count() for pool in Pool.objects.all()} == {"a": MANY // 2, "b": MANY // 2}
    assert recount(cluster.pk) == 0
    assert imported.most_rows <= MOST_ROWS


def test_what_a_crash_left_of_a_changed_pool_is_marked_and_the_observer_sorts_it(cluster, monkeypatch):
    truly, turns = membership_writes.sort_nodes, []

    def dies(*given, **named):
        turns.append(1)
        if len(turns) == 2:
            raise SystemExit
        truly(*given, **named)

    monkeypatch.setattr(membership_writes, "sort_nodes", dies)
    with pytest.raises(SystemExit):
        create_pool(cluster=cluster, name="one", selector="zone", **BY)
    monkeypatch.undo()
    pool = Pool.objects.get()
    assert 0 < pool.nodes.count() < MANY
    assert not pool.is_sorted

    sort_cluster(cluster.pk)

    pool.refresh_from_db()
    assert (pool.nodes.count(), pool.is_sorted) == (MANY, True)


def test_a_selector_that_changes_meanwhile_leaves_the_pool_unsorted(cluster, monkeypatch):
    pool = create_pool(cluster=cluster, name="one", selector="zone=a", **BY)
    truly = membership_writes.sort_nodes

    def meanwhile(*given, **named):
        truly(*given, **named)
        Pool.objects.update(selector="zone=b")

    monkeypatch.setattr(membership_writes, "sort_nodes", meanwhile)
    change_pool(pool, selector="zone", **BY)

    assert not Pool.objects.get().is_sorted


def test_a_pool_that_a_plan_needs_meanwhile_gets_its_nodes_back(cluster, monkeypatch):
    pool = create_pool(cluster=cluster, name="one", selector="zone", **BY)
    monkeypatch.setattr("fleet.pools.changes.write_deletion", refuse)

    with pytest.raises(PoolInUse):
        delete_pool(pool, **BY)

    pool.refresh_from_db()
    assert (pool.nodes.count(), pool.is_sorted) == (MANY, True)
    assert not AuditEntry.objects.filter(verb="pool.delete").exists()


def refuse(*given, **named):
    raise PoolInUse("A plan names it.")
