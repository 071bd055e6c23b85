"""What pages and lists ask of the database does not grow with the fleet: counted, not timed."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection
from django.test import Client

from fleet.models import DriverObject, Node
from tests import make
from tests.pages import visiting

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "sqlite", reason="SQLite says how many instructions a statement took"),
    pytest.mark.sqlite,
]
STEP = 10  # instructions, of which a row that is read takes a few
FEW, MANY = 150, 600  # of which a third is still more than a page of the table has
FILTERS = (
    "sort=name", "sort=free", "sort=driver", "sort=changed", "faults=1&sort=free", "state=not-ready&sort=changed",
    "held=1", "product=NVIDIA-H200",
)  # fmt: skip


def a_fleet(nodes: range) -> None:
    """Of every three nodes one is not ready, and one is held."""
    driver = DriverObject.objects.select_related("cluster").get(name="h200")
    daemon_set = driver.cluster.operands.get()
    pools = list(driver.cluster.pools.all())
    for number in nodes:
        node = make.a_node(
            driver.cluster,
            f"node-{number:04}",
            pool=pools[number % 2],
            gpus=1,
            is_ready=number % 3 != 1,
            is_held=number % 3 == 2,
            zone="ab"[number % 2],
            driver_daemon_set=daemon_set.uid,
            driver_owner=driver.name,
        )
        make.a_pod(node, gpus=0, operand="driver", owner_uid=daemon_set.uid)


@pytest.fixture
def paths() -> list[str]:
    cluster = make.a_cluster("east")
    make.a_driver_object(cluster, "h200")
    make.an_operand(cluster, owner_kind="NVIDIADriver", owner_name="h200")
    pools = [make.a_pool(cluster), make.a_pool(cluster)]
    a_fleet(range(FEW))
    node = Node.objects.earliest("pk")
    place = f"clusters/{cluster.pk}"
    maps = ["/parts/fleet/map", "/parts/fleet/map/index"]
    pages = ["/", *maps, "/pools", f"/pools/{pools[0].pk}", f"/nodes/{node.pk}", "/segments", "/segments?zone=a"]
    pages.append("/findings")
    lists = [
        "driver-objects",
        "clusters",
        place,
        f"{place}/compatibility",
        "pools",
        "segments",
        "segments?zone=a",
        "nodes",
    ]
    return [*pages, *(f"/?{each}" for each in FILTERS), *(f"/api/v1/{each}" for each in lists)]


def test_what_is_asked_of_the_database_does_not_grow_with_the_fleet(paths, monkeypatch):
    count = make.counted
    monkeypatch.setattr(make, "counted", lambda: None)  # with every request, it would be counted, too
    client = visiting(make.a_user(role="viewer"))
    count()
    few = {path: instructions(client, path) for path in paths}
    a_fleet(range(FEW, MANY))
    count()

    many = {path: instructions(client, path) for path in paths}

    assert Node.objects.count() == MANY
    assert {path: round(many[path] / few[path], 1) for path in paths if many[path] > 1.5 * few[path]} == {}


def instructions(client: Client, path: str) -> int:
    client.get(path)
    with counting() as counted:
        assert client.get(path).status_code == 200
    return sum(counted)


@contextmanager
def counting() -> Iterator[list[int]]:
    steps: list[int] = []
    connection.ensure_connection()
    connection.connection.set_progress_handler(lambda: steps.append(STEP), STEP)
    try:
        yield steps
    finally:
        connection.connection.set_progress_handler(None, 0)
