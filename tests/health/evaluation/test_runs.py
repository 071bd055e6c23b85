"""The times in which a cluster was evaluated, and those between them."""

from datetime import timedelta

import pytest

from health.evaluation.runs import ENDS_AFTER, record_round, spans_without_rounds
from health.models import EvaluationRun
from tests.make import NOON, a_cluster

pytestmark = pytest.mark.django_db
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_rounds_extend_a_run_until_there_was_none_for_minutes():
    cluster = a_cluster()
    back_at = NOON + 10 * MINUTE + ENDS_AFTER + MINUTE
    for now in (*(NOON + number * MINUTE for number in range(11)), back_at, back_at + MINUTE):
        record_round(cluster, now=now)

    runs = EvaluationRun.objects.order_by("began_at").values_list("began_at", "until")

    assert list(runs) == [(NOON, NOON + 10 * MINUTE), (back_at, back_at + MINUTE)]


def test_a_round_that_was_late_shortens_no_run(django_assert_num_queries):
    cluster = a_cluster()
    record_round(cluster, now=NOON)

    with django_assert_num_queries(1):
        record_round(cluster, now=NOON - MINUTE)
    assert EvaluationRun.objects.get().until == NOON


@pytest.mark.parametrize(
    ("since", "now", "spans"),
    [
        (0, 1, []),
        (0, 6, [(2, 5)]),
        (3, 6, [(3, 5)]),  # it began in the gap
        (5, 6, []),
        (0, 9, [(2, 5), (6, 9)]),  # Quarterdeck does not run now
        (-3, 1, []),  # nothing is known of the time before the first run
        (7, 9, [(7, 9)]),
    ],
)
def test_the_times_between_runs_are_without_rounds(since, now, spans):
    cluster = a_cluster()
    for began_at, until in ((0, 2), (5, 6)):
        EvaluationRun.objects.create(cluster=cluster, began_at=NOON + began_at * HOUR, until=NOON + until * HOUR)
    EvaluationRun.objects.filter(began_at__gt=NOON + now * HOUR).delete()
    EvaluationRun.objects.filter(until__gt=NOON + now * HOUR).update(until=NOON + now * HOUR)

    found = spans_without_rounds(cluster.pk, since=NOON + since * HOUR, now=NOON + now * HOUR)

    assert [((begun - NOON) / HOUR, (ended - NOON) / HOUR) for begun, ended in found] == spans


def test_without_any_run_nothing_is_known():
    assert not list(spans_without_rounds(a_cluster().pk, since=NOON, now=NOON + HOUR))
