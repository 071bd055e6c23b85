"""A node, a pool or a source of telemetry changes while a person says something about it: never an error of ours."""

from threading import Event, Thread

import pytest
from django.db import connection

from demo.visitor import wait_until
from edges import concurrent_edits
from edges.transition_errors import LostRace
from fleet.models import Cluster, LostLease, Node, Observer, Pool
from fleet.pools.changes import delete_pool
from health.inbox import rule_mutes, shadow_mode
from health.inbox.pool_limits import LimitsAsked, put_limits
from health.inbox.refusals import BadAct
from health.inbox.telemetry_sources import put_source
from health.lifecycle import FindingState
from health.models import Finding, Mute, PoolLimits, RuleShadow, TelemetrySource
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from tests.locks import one_waits, while_it_is_written
from tests.make import NOON, a_cluster, a_finding, a_node, a_pool, a_source
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]
RULE = "node-not-ready"


@pytest.fixture
def cluster(transactional_db) -> Cluster:
    cluster = a_cluster("eu-1")
    Observer.objects.create(cluster=cluster, epoch=1, lease_until=NOON)
    return cluster


def limit(pool: Pool) -> None:
    put_limits(pool, "gpu-hot", LimitsAsked(75, 80, 180), version=None, actor="ada", reason="x", now=NOON)


def test_what_is_muted_in_a_pool_while_it_is_deleted_is_not(cluster):
    pool = a_pool(cluster, "late")
    row = rule_mutes.mute_of_place(cluster, RULE, pool=pool)

    refusals = while_it_is_written(
        lambda: delete_pool(Pool.objects.get(pk=pool.pk), actor="ada", now=NOON),
        lambda: rule_mutes.mute(row, actor="ada", reason="x", until=NOON.replace(hour=20), now=NOON),
    )

    assert [type(each) for each in refusals] == [BadAct]
    assert str(refusals[0]) == "Somebody has deleted pool late since you read it."
    assert not Mute.objects.exists()


def test_a_pool_that_is_deleted_while_it_gets_limits_has_none(cluster):
    pool = a_pool(cluster, "late")

    refusals = while_it_is_written(
        lambda: delete_pool(Pool.objects.get(pk=pool.pk), actor="ada", now=NOON), lambda: limit(pool)
    )

    assert [(type(each), str(each)) for each in refusals] == [
        (LostRace, "Somebody has deleted pool late since you read it.")
    ]
    assert not PoolLimits.objects.exists()


def test_two_pools_get_limits_of_one_rule_at_once(cluster):
    """They have one chain."""
    for name in ("first", "one", "two"):
        a_pool(cluster, name)
    limit(Pool.objects.get(name="first"))

    refusals = while_it_is_written(
        lambda: limit(Pool.objects.get(name="one")), lambda: limit(Pool.objects.get(name="two"))
    )

    assert refusals == []
    entries = AuditEntry.objects.filter(subject="limits:gpu-hot")
    assert entries.count() == PoolLimits.objects.count() == 3
    assert list(broken_links(entries)) == []


@pytest.mark.parametrize("begins", [True, False])
def test_a_node_goes_while_the_trial_of_a_rule_turns_what_is_wrong_with_it(cluster, begins):
    goes = a_node(cluster, "gpu-001")
    a_finding(cluster, node=goes, rule=RULE)
    if not begins:
        shadow_mode.begin(RULE, actor="ada", reason="x", now=NOON)

    def lose_it() -> None:
        Observer.keep(cluster.pk, epoch=1, now=NOON, flushed=True)
        Node.objects.filter(pk=goes.pk).delete()

    def turn() -> None:
        if begins:
            shadow_mode.begin(RULE, actor="ada", reason="x", now=NOON)
        else:
            shadow_mode.end_shadow_mode(RuleShadow.objects.get(), actor="ada", reason="x", now=NOON)

    assert while_it_is_written(lose_it, turn) == []
    assert RuleShadow.objects.in_force().exists() is begins
    found = Finding.objects.get(state=FindingState.OPEN)
    assert (found.node, found.is_shadow) == (None, begins)


def test_who_has_taken_a_source_up_while_it_is_changed_keeps_nothing_of_what_it_was(cluster, monkeypatch):
    a_source(cluster, lease_until=NOON, next_look_at=NOON)
    was, taken = TelemetrySource.objects.get().url, list[tuple[TelemetrySource, int]]()
    is_through = Event()

    def take() -> None:
        try:
            if took := TelemetrySource.take(cluster.pk, now=NOON):
                taken.append(took)
        finally:
            is_through.set()
            connection.close()

    worker = Thread(target=take)

    def while_it_is_looked_at(*_: object, **__: object) -> None:
        worker.start()
        if connection.vendor == "postgresql":  # SQLite has one writer
            wait_until(lambda: one_waits() or is_through.is_set(), what="a worker that waits", timeout_s=PATIENCE_S)

    monkeypatch.setattr(concurrent_edits, "refuse_unseen", while_it_is_looked_at)
    put_source(cluster, actor="ada", now=NOON, url="http://192.0.2.2:9090")
    worker.join()

    for source, epoch in taken:
        if source.url == was:
            with pytest.raises(LostLease):
                TelemetrySource.keep(source.pk, epoch=epoch, lease_until=NOON)
