from datetime import timedelta

import pytest

from fleet import housekeeping
from fleet.models import CrashLog, Finding, NodeEvent
from people.models import AuditEntry
from tests.make import NOON, a_cluster, a_crash_log, a_node, a_node_event, a_pod

pytestmark = pytest.mark.django_db
LONG_AGO = NOON - timedelta(days=500)


def test_old_lines_of_a_timeline_go_and_new_ones_stay():
    node = a_node(a_cluster())
    a_node_event(node, "Old.", at=LONG_AGO)
    a_node_event(node, "New.", at=NOON)

    housekeeping.tidy(now=NOON)

    assert [event.sentence for event in NodeEvent.objects.all()] == ["New."]


def test_an_open_finding_stays_however_old():
    row = {"cluster": a_cluster(), "rule": "x", "severity": "note", "since": LONG_AGO, "updated_at": LONG_AGO}
    Finding.objects.create(subject="a", opened_at=LONG_AGO, **row)
    Finding.objects.create(subject="b", opened_at=LONG_AGO, resolved_at=LONG_AGO, **row)

    housekeeping.tidy(now=NOON)

    assert Finding.objects.get().subject == "a"


def test_the_log_of_a_pod_goes_with_it():
    pod = a_pod(a_node(a_cluster()))
    a_crash_log(pod, "insmod: ERROR")
    pod.delete()

    housekeeping.tidy(now=NOON)

    assert not CrashLog.objects.exists()


def test_decisions_stay_for_good():
    AuditEntry.record("plan-1", verb="start", actor="ada", now=LONG_AGO)

    housekeeping.tidy(now=NOON)

    assert AuditEntry.objects.count() == 1
