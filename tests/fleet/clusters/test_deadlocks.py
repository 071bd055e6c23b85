"""A person accepts a cluster while a worker writes it: neither is refused because both wait for each other."""

from threading import Event, Thread

import pytest
from django.db import connection

from demo.visitor import wait_until
from fleet.clusters import acceptance
from fleet.clusters.acceptance import accept
from fleet.messages import announce, wake
from fleet.models import Bookmark, Cluster, LostLease, Observer
from fleet.observer.lease import watch_lease
from fleet.observer.lease.watch_lease import WatchLease
from fleet.observer.watches.deltas import ForeignCluster
from fleet.pools.changes import create_pool
from tests import make
from tests.locks import one_waits, while_it_is_written
from tests.make import NOON
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]


@pytest.fixture
def cluster(transactional_db, monkeypatch) -> Cluster:
    monkeypatch.setattr(wake, "wake_observer", lambda *_: None)
    monkeypatch.setattr(announce, "send", lambda *_: None)
    cluster = make.a_cluster("north", foreign_uid="new")
    Observer.objects.create(cluster=cluster, epoch=1, lease_until=NOON)
    return cluster


def accept_it(cluster: Cluster) -> None:
    accept(Cluster.objects.get(pk=cluster.pk), uid="new", actor="ada", reason="Rebuilt.", now=NOON)


def test_a_flush_goes_on_while_somebody_accepts_the_cluster(cluster):
    """It has the observer's row, and what it writes names the cluster."""
    refusals = while_it_is_written(
        lambda: Observer.keep(cluster.pk, epoch=1, now=NOON, flushed=True),
        lambda: accept_it(cluster),
        lambda: make.a_node(cluster),
    )

    assert refusals == []
    assert Cluster.objects.get().uid == "new"


def test_a_pool_is_written_while_somebody_accepts_the_cluster(cluster):
    node = make.a_node(cluster, labels={"zone": "a"})

    refusals = while_it_is_written(
        lambda: Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk),
        lambda: accept_it(cluster),
        lambda: create_pool(cluster=cluster, actor="ada", now=NOON, name="a", selector="zone=a"),
    )

    assert refusals == []
    assert list(node.pools.values_list("name", flat=True)) == ["a"]


def test_a_worker_finds_the_other_cluster_again_while_somebody_accepts_it(cluster, monkeypatch):
    refused: list[Exception] = []
    lease = WatchLease(cluster, 1, 0.0, Event(), clock=lambda: NOON)

    def note() -> None:
        try:
            watch_lease._note_failure(lease, ForeignCluster("Another cluster answers.", foreign_uid="new"))
        except Exception as error:  # noqa: BLE001 - what it was is what the test asks
            refused.append(error)
        finally:
            connection.close()

    worker = Thread(target=note)

    def while_it_is_accepted(_: Cluster) -> str:
        worker.start()
        if connection.vendor == "postgresql":
            wait_until(one_waits, what="a worker that waits", timeout_s=PATIENCE_S)
        return ""

    monkeypatch.setattr(acceptance, "OBJECTIONS", [while_it_is_accepted])
    accept_it(cluster)
    worker.join()

    assert [type(error) for error in refused] in ([], [LostLease])  # SQLite may let it write first
    assert Cluster.objects.get().uid == "new"
    assert not Bookmark.objects.exists()
