"""A worker says how many clusters it can watch at once for as long as it lives, and only one that takes leases does."""

from threading import Event
from types import SimpleNamespace

import pytest
from django.db import DatabaseError

from fleet.models import ObservingWorker
from fleet.observer.lease import worker_reports

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def a_consumer(*queues: str, concurrency: int = 8) -> SimpleNamespace:
    """As Celery hands it to who waits for a worker to be ready."""
    amqp = SimpleNamespace(queues=SimpleNamespace(consume_from=dict.fromkeys(queues)))
    return SimpleNamespace(app=SimpleNamespace(amqp=amqp), pool=SimpleNamespace(num_processes=concurrency))


class Stop(Event):
    """Set after so many waits."""

    def __init__(self, waits: int) -> None:
        super().__init__()
        self.left = waits
        self.rows: list[list[int]] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.rows.append(list(ObservingWorker.objects.values_list("threads", flat=True)))
        self.left -= 1
        return self.left <= 0


def test_it_says_so_again_and_again_and_takes_its_threads_away_when_it_is_told_to_end():
    sizes, stop = iter([8, 6]), Stop(waits=2)

    worker_reports.report_until(stop, name="host:1", threads=lambda: next(sizes))

    assert stop.rows == [[8], [6]]
    assert not ObservingWorker.objects.exists()


def test_a_database_that_is_away_costs_one_report(monkeypatch):
    stop, write, tries = Stop(waits=2), ObservingWorker.report, []

    def away_at_first(*told, **more):
        tries.append(told)
        if len(tries) == 1:
            raise DatabaseError("gone away")
        write(*told, **more)

    monkeypatch.setattr(ObservingWorker, "report", away_at_first)

    worker_reports.report_until(stop, name="host:1", threads=lambda: 8)

    assert stop.rows == [[], [8]]


@pytest.mark.parametrize(("queues", "reports"), [(("observe",), 1), (("default", "observe"), 1), (("rollouts",), 0)])
def test_only_a_worker_that_takes_leases_reports(monkeypatch, queues, reports):
    begun: list[int] = []
    monkeypatch.setattr(worker_reports, "start", lambda threads: begun.append(threads()))

    worker_reports.begin(sender=a_consumer(*queues))

    assert begun == [8] * reports
