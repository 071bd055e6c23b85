from datetime import timedelta

import pytest

from health import tasks, wake
from health.evaluation import overdue_clusters
from health.lifecycle import FindingState
from tests import make
from tests.health.turns import give_back
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.rounds]
SECOND = timedelta(seconds=1)


@pytest.fixture
def cluster(redis):
    row = make.a_cluster()
    give_back(row.pk, overdue_clusters.LOOK)
    return row


def test_a_cluster_is_due_when_nobody_judged_it_for_a_while(cluster):
    assert overdue_clusters.due(now=NOON) == [cluster.pk]

    overdue_clusters.record_evaluation(cluster.pk, now=NOON)

    assert overdue_clusters.due(now=NOON + 29 * SECOND) == []
    assert overdue_clusters.due(now=NOON + 30 * SECOND) == [cluster.pk]


def test_a_finding_that_was_right_for_long_enough_waits_for_no_sweep(cluster):
    overdue_clusters.record_evaluation(cluster.pk, now=NOON)
    make.a_finding(cluster, state=FindingState.CONFIRMING, confirmed_at=NOON + 10 * SECOND)

    assert overdue_clusters.due(now=NOON + 9 * SECOND) == []
    assert overdue_clusters.due(now=NOON + 10 * SECOND) == [cluster.pk]


def test_a_look_counts_whoever_asked_for_it(cluster, monkeypatch):
    seen = []
    monkeypatch.setattr(tasks, "evaluate_cluster", lambda row, *, now: seen.append((row, now)))

    tasks.look_for_findings(cluster_id=cluster.pk)

    ((row, now),) = seen
    assert row == cluster
    assert overdue_clusters.due(now=now + 29 * SECOND) == []


def test_where_redis_is_away_a_look_is_over_all_the_same_and_due_again(cluster, monkeypatch, settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    seen = []
    monkeypatch.setattr(tasks, "evaluate_cluster", lambda row, **_: seen.append(row))

    tasks.look_for_findings(cluster_id=cluster.pk)

    assert seen == [cluster]
    assert overdue_clusters.due(now=NOON) == [cluster.pk]


@pytest.mark.parametrize(("task", "asks"), [("ask_telemetry", "telemetry"), ("ask_exporters", "exporter_round")])
@pytest.mark.parametrize("was_due", [True, False], ids=["asked", "not due"])
def test_what_gpus_said_is_judged_at_once(cluster, monkeypatch, task, asks, was_due):
    evaluated = []
    monkeypatch.setattr(getattr(tasks, asks), "ask", lambda *_, **__: object() if was_due else None)
    monkeypatch.setattr(wake.findings_soon, "ask", evaluated.append)

    getattr(tasks, task)(cluster_id=cluster.pk)

    assert evaluated == [cluster.pk] * was_due


def test_the_time_of_the_newest_evaluation_outlasts_its_turn(cluster):
    assert overdue_clusters.last_evaluation(cluster.pk) is None

    overdue_clusters.record_evaluation(cluster.pk, now=NOON)

    assert overdue_clusters.last_evaluation(cluster.pk) == NOON
