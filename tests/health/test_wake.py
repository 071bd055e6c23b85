"""What is told while a cluster is watched becomes a nudge of the app that wants to know."""

import time

import pytest
from celery import current_app

from fleet.messages import listeners
from health import wake
from rollouts.messages.wake import plans_of
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nobody_was_woken(monkeypatch: pytest.MonkeyPatch) -> None:
    for coalesced in (plans_of, wake.findings_soon):
        monkeypatch.setattr(coalesced, "sent", {})
        monkeypatch.setattr(coalesced, "owed", set())
    monkeypatch.setattr(wake, "_crash_logs_woken", {})


def wait_for(is_so) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("heard", "task"),
    [
        (listeners.STATE_CHANGED, "health.tasks.look_for_findings"),
        (listeners.CHANGED, "rollouts.tasks.wake_plans_of"),
        (listeners.CRASHED, "health.tasks.read_crash_logs"),
    ],
)
def test_who_wants_to_know_is_woken(sent, heard, task):
    listeners.notify(heard, 3)

    wait_for(lambda: sent)
    assert [(name, given["kwargs"]) for name, given in sent] == [(task, {"cluster_id": 3})]
    current_app.loader.import_default_modules()
    assert task in current_app.tasks


def test_crashes_of_a_cluster_are_one_nudge_and_those_of_another_their_own(sent):
    for cluster_id in (3, 3, 4, 3):
        wake.wake_crash_logs_of(cluster_id)

    wait_for(lambda: len(sent) == 2)
    time.sleep(0.05)
    assert [given["kwargs"] for _, given in sent] == [{"cluster_id": 3}, {"cluster_id": 4}]
