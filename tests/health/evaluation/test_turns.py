"""Sources that are not evaluated in every round."""

from datetime import timedelta

import pytest

from fleet.models import Observer
from health.evaluation import evaluation_round
from health.evaluation.finding_sources import SOURCES, FindingSource
from health.models import Finding
from health.rules.base import Problem, Severity
from tests.health.turns import give_back
from tests.make import NOON, a_cluster

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize("is_redis_up", [True, False])
def test_findings_of_a_source_stay_until_its_turn(is_redis_up, request, monkeypatch):
    if is_redis_up:
        request.getfixturevalue("redis")
    said = [("thing", Problem(severity=Severity.NOTE, title="Odd"))]
    source = FindingSource("odd", "Odd", timedelta(0), lambda *_, **__: said, every=60 * MINUTE)
    monkeypatch.setitem(SOURCES, "odd", source)
    cluster = a_cluster("east")
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    found = Finding.objects.unresolved().filter(rule="odd")

    evaluation_round.evaluate_cluster(cluster, now=NOON)
    assert found.exists() is is_redis_up
    said.clear()
    evaluation_round.evaluate_cluster(cluster, now=NOON + MINUTE)
    assert found.exists() is is_redis_up
    evaluation_round.evaluate_cluster(cluster, now=NOON + 61 * MINUTE)
    assert not found.exists()
    if is_redis_up:
        give_back(cluster.pk, "odd")


def test_a_source_that_reads_a_stale_kind_is_not_evaluated(monkeypatch):
    problem = Problem(severity=Severity.NOTE, title="Odd")
    source = FindingSource("odd", "Odd", timedelta(0), lambda *_, **__: [("thing", problem)], reads=("pods",))
    monkeypatch.setitem(SOURCES, "odd", source)
    cluster = a_cluster("east")
    Observer.objects.create(cluster=cluster, lease_until=NOON + timedelta(days=1))
    found = Finding.objects.unresolved().filter(rule="odd")

    evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(hours=1))
    assert not found.exists()
    evaluation_round.evaluate_cluster(cluster, now=NOON)
    assert found.exists()
