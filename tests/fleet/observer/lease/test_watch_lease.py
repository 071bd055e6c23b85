"""Who gets the lease when there are more clusters than threads, and when some of them do not answer."""

import heapq
from datetime import datetime, timedelta
from random import Random
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fleet.messages import wake
from fleet.models import Cluster, LostLease, Observer
from fleet.models.observer import FIRST_WAIT, GRACE, LEASE, LONGEST_WAIT, ONE_IN, wait_after
from fleet.observer.lease.sweep import sweep
from fleet.observer.lease.watch_lease import _note_credentials, take_lease
from kube.credential_life import CredentialLife
from tests.make import NOON, a_cluster

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
SECOND = timedelta(seconds=1)


def an_observer(name="", **given):
    row = {"lease_until": NOON - SECOND, **given}
    return Observer.objects.create(cluster=a_cluster(name, seen_at=None), **row)


@given(failures=st.integers(0, 10_000), share=st.floats(0, 1))
def test_a_cluster_that_does_not_answer_is_left_alone_longer_each_time_and_never_for_long(failures, share):
    wait = wait_after(failures, share=share)

    assert FIRST_WAIT / 2 <= wait <= LONGEST_WAIT
    assert wait_after(failures + 1, share=share) >= wait


def test_its_lease_cannot_be_taken_before_its_time():
    row = an_observer(next_look_at=NOON + SECOND)

    assert Observer.take(row.cluster_id, epoch=0, owner="w", now=NOON) is None
    assert Observer.take(row.cluster_id, epoch=0, owner="w", now=NOON + SECOND) == 1


def test_backing_off_counts_and_gives_the_place_back():
    row = an_observer()
    for epoch in range(3):
        now = NOON + epoch * timedelta(hours=1)
        Observer.take(row.cluster_id, epoch=epoch, owner="w", now=now)
        wait = Observer.back_off(row.cluster_id, epoch=epoch + 1, share=1.0, now=now)
    row.refresh_from_db()

    assert (row.failures, row.failing_since, wait) == (3, NOON, 4 * FIRST_WAIT)
    assert row.next_look_at == now + wait
    assert row.lease_until < now


class _Connection:
    def credential_lives(self) -> list[CredentialLife]:
        return [CredentialLife("token", NOON, NOON + timedelta(days=90))]


def test_ends_of_credentials_are_recorded_under_the_lease_alone():
    row = an_observer(epoch=3)

    for epoch, is_recorded in ((2, False), (3, True)):
        _note_credentials(row, _Connection(), SimpleNamespace(epoch=epoch))
        row.refresh_from_db()
        assert bool(row.credential_lives) is is_recorded


def test_that_it_does_not_answer_is_told_once_with_the_number_before(told, monkeypatch):
    monkeypatch.setattr(wake, "wake_observer_after", lambda *_: None)
    row = an_observer(batch=41)
    Cluster.objects.update(kubeconfig="/nowhere")

    for epoch in range(2):
        Observer.objects.update(lease_until=NOON, next_look_at=None)
        take_lease(row.cluster_id, epoch)

    assert [(one["prev"], one["seq"], one["kinds"]) for one in told] == [(41, 42, ["bookmarks"])]


def test_backing_off_loses_to_who_has_the_lease_by_now():
    row = an_observer(epoch=7)

    with pytest.raises(LostLease):
        Observer.back_off(row.cluster_id, epoch=6, share=0.5, now=NOON)

    row.refresh_from_db()
    assert (row.failures, row.next_look_at) == (0, None)


def test_an_answer_ends_the_waiting_unless_the_lease_is_somebody_elses():
    row = an_observer(epoch=7, failures=5, failing_since=NOON, next_look_at=NOON)

    Observer.note_answer(row.cluster_id, epoch=6)
    row.refresh_from_db()
    assert row.failures == 5

    Observer.note_answer(row.cluster_id, epoch=7)
    row.refresh_from_db()
    assert (row.failures, row.failing_since, row.next_look_at) == (0, None, None)


def test_a_person_need_not_wait_for_its_time():
    row = an_observer(epoch=4, failures=9, failing_since=NOON, next_look_at=NOON + LONGEST_WAIT)

    assert Observer.try_now(row.cluster_id) == 4
    assert Observer.take(row.cluster_id, epoch=4, owner="w", now=NOON) == 5


def test_one_that_fails_gives_its_place_to_one_that_may_answer_but_not_for_ever():
    failing, other = an_observer(failures=3), an_observer(failures=1)
    assert not Observer.yields_thread(failing.cluster_id, now=NOON)

    well, new = an_observer(epoch=3), an_observer()
    assert Observer.yields_thread(failing.cluster_id, now=NOON)
    assert Observer.yields_thread(new.cluster_id, now=NOON)
    assert not Observer.yields_thread(well.cluster_id, now=NOON)

    Observer.objects.filter(pk=other.pk).update(lease_until=NOON - ONE_IN)
    assert not Observer.yields_thread(failing.cluster_id, now=NOON)

    Observer.objects.filter(pk=other.pk).update(lease_until=NOON)
    Observer.objects.filter(pk=well.pk).update(lease_until=NOON + LEASE)
    assert not Observer.yields_thread(failing.cluster_id, now=NOON)


def test_the_sweep_offers_what_is_due_and_first_what_answers(monkeypatch):
    offered = []
    monkeypatch.setattr(wake, "wake_observer", lambda cluster_id, _: offered.append(cluster_id))
    failing = an_observer(failures=2, next_look_at=NOON - SECOND)
    an_observer(failures=2, next_look_at=NOON + SECOND)
    well = an_observer()

    assert sweep(now=NOON) == 2
    assert offered == [well.cluster_id, failing.cluster_id]


def test_nobody_watches_what_is_due_for_longer_than_from_lease_to_lease():
    between = an_observer()
    left = an_observer(lease_until=NOON - GRACE - SECOND)
    an_observer(lease_until=NOON - LONGEST_WAIT, next_look_at=NOON + SECOND)

    assert list(Cluster.objects.unwatched(now=NOON)) == [left.cluster]
    assert Cluster.objects.unwatched(now=NOON + GRACE).count() == 2
    assert between.epoch == 0


class Workers:
    """What the workers do, by a clock of our own: rows, guards and waits are the real ones, only time is not."""

    HELD, DEAD, SWEEP = timedelta(seconds=60), timedelta(seconds=10), timedelta(seconds=10)

    def __init__(self, dead: set[int], threads: int, seed: int) -> None:
        self.dead, self.free, self.random = dead, threads, Random(seed)
        self.queue: list[tuple[int, int]] = []
        self.events: list[tuple] = []
        self.heard: dict[int, datetime] = {}  # when a cluster that answers was last watched
        self.firsts: list[timedelta] = []  # how long each waited for its first lease
        self.gaps: list[timedelta] = []  # and from one to the next

    def run(self, monkeypatch, *, until) -> None:
        monkeypatch.setattr(wake, "wake_observer", lambda cluster_id, epoch: self.queue.append((cluster_id, epoch)))
        self._at(NOON, "sweep", 0, 0)
        while self.events and self.events[0][0] <= until:
            now, _, what, cluster_id, epoch = heapq.heappop(self.events)
            getattr(self, what)(cluster_id, epoch, now)
            self._serve(now)

    def _at(self, when, what: str, cluster_id: int, epoch: int) -> None:
        heapq.heappush(self.events, (when, self.random.random(), what, cluster_id, epoch))

    def sweep(self, _cluster_id, _epoch, now) -> None:
        sweep(now=now)
        self._at(now + self.SWEEP, "sweep", 0, 0)

    def _serve(self, now) -> None:
        while self.free and self.queue:
            cluster_id, number = self.queue.pop(0)
            if Observer.yields_thread(cluster_id, now=now):
                continue
            if (epoch := Observer.take(cluster_id, epoch=number, owner="w", now=now)) is None:
                continue
            self.free -= 1
            Observer.objects.filter(cluster_id=cluster_id).update(lease_until=now + timedelta(hours=1))  # kept
            if cluster_id in self.dead:
                self._at(now + self.DEAD, "fails", cluster_id, epoch)
            else:
                waits, since = (self.gaps, self.heard[cluster_id]) if cluster_id in self.heard else (self.firsts, NOON)
                waits.append(now - since)
                self._at(now + self.HELD, "ends", cluster_id, epoch)

    def fails(self, cluster_id, epoch, now) -> None:
        self.free += 1
        wait = Observer.back_off(cluster_id, epoch=epoch, share=self.random.random(), now=now)
        if wait <= wake.TIMED_AT_MOST:
            self._at(now + wait, "offer", cluster_id, epoch)

    def ends(self, cluster_id, epoch, now) -> None:
        self.free += 1
        self.heard[cluster_id] = now
        Observer.note_answer(cluster_id, epoch=epoch)
        Observer.give_up(cluster_id, epoch=epoch, now=now)
        self.queue.append((cluster_id, epoch))

    def offer(self, cluster_id, epoch, _now) -> None:
        self.queue.append((cluster_id, epoch))


@settings(max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(dead=st.integers(0, 20), threads=st.integers(1, 8), well=st.integers(1, 8), seed=st.integers(0, 99))
@example(dead=30, threads=4, well=1, seed=1)
@example(dead=9, threads=3, well=3, seed=0)
def test_a_cluster_that_answers_is_watched_however_many_others_do_not(monkeypatch, dead, threads, well, seed):
    """Once it was watched, it waits no longer for its next lease than one that does not answer takes."""
    Cluster.objects.all().delete()
    keys = [an_observer(f"c-{n}").cluster_id for n in range(dead + min(well, threads))]
    Random(seed).shuffle(keys)
    workers = Workers(set(keys[:dead]), threads, seed)

    workers.run(monkeypatch, until=NOON + timedelta(minutes=5))

    # Nobody knows yet which of them will answer; at worst only the threads that the others leave are tried.
    left = threads - min(well, threads) + 1
    assert len(workers.firsts) == min(well, threads)
    assert max(workers.firsts) <= Workers.DEAD * (dead // left + 2)
    assert len(workers.gaps) >= min(well, threads)
    assert max(workers.gaps) <= 2 * Workers.DEAD
