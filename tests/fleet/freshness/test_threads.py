"""How many clusters can be watched at once, by what the observing workers say of themselves."""

from datetime import timedelta

import pytest

from fleet.freshness.threads import threads
from fleet.models import Observer, ObservingWorker
from fleet.models.observer import LEASE
from tests.make import NOON, a_cluster

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)


def watched(number: int) -> None:
    for _ in range(number):
        Observer.objects.create(cluster=a_cluster(seen_at=None), epoch=1, lease_until=NOON + SECOND)


def unwatched(number: int) -> None:
    for _ in range(number):
        Observer.objects.create(cluster=a_cluster(seen_at=None), epoch=1, lease_until=NOON - timedelta(minutes=2))


def test_they_are_added_up_and_those_in_use_are_the_turns_that_are_held():
    ObservingWorker.report("one:7", threads=8, now=NOON)
    ObservingWorker.report("two:7", threads=4, now=NOON)
    watched(3)
    unwatched(1)

    seen = threads(now=NOON)

    assert (seen.workers, seen.total, seen.in_use, seen.clusters) == (2, 12, 3, 4)


def test_a_worker_that_says_nothing_for_a_lease_no_longer_counts():
    ObservingWorker.report("one:7", threads=8, now=NOON)
    ObservingWorker.report("two:7", threads=4, now=NOON)
    ObservingWorker.report("two:7", threads=5, now=NOON + LEASE)

    seen = threads(now=NOON + LEASE + SECOND)

    assert (seen.workers, seen.total) == (1, 5)


def test_one_that_ends_takes_its_threads_with_it_at_once():
    ObservingWorker.report("one:7", threads=8, now=NOON)
    ObservingWorker.leave("one:7")

    assert threads(now=NOON).total == 0


def test_workers_that_died_long_ago_are_forgotten_by_the_next_report():
    ObservingWorker.report("one:7", threads=8, now=NOON)
    ObservingWorker.report("two:7", threads=4, now=NOON + timedelta(days=2))

    assert list(ObservingWorker.objects.values_list("name", flat=True)) == ["two:7"]


def test_too_few_are_told_as_a_ratio_with_what_to_raise():
    ObservingWorker.report("one:7", threads=1, now=NOON)
    watched(1)
    unwatched(2)

    assert threads(now=NOON).action == (
        "1 thread for 3 clusters. Increase -c of the workers of the queue “observe”, or start another worker."
    )


def test_without_a_worker_that_reports_one_has_to_be_started():
    unwatched(2)

    assert (
        threads(now=NOON).action
        == "No worker of the queue “observe” reports. Start a worker with a thread for each cluster."
    )


def test_enough_of_them_and_nobody_comes_is_no_lack_of_threads():
    ObservingWorker.report("one:7", threads=8, now=NOON)
    unwatched(2)

    assert threads(now=NOON).action == (
        "8 threads for 2 clusters, 0 in use. Check whether Redis answers, and read the log of the workers of the "
        "queue “observe”."
    )


def test_turns_that_nobody_hands_out_are_no_lack_of_threads_however_many_clusters_there_are():
    ObservingWorker.report("one:7", threads=1, now=NOON)
    unwatched(3)

    assert "in use" in threads(now=NOON).action


def test_they_cost_two_queries(django_assert_num_queries):
    unwatched(2)

    with django_assert_num_queries(2):
        assert threads(now=NOON).action
