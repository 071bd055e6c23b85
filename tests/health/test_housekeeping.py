from datetime import timedelta

import pytest

from fleet import retention
from health.models import CrashLog, Finding
from tests.make import NOON, a_cluster, a_crash_log, a_finding, a_node, a_pod

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
LONG_AGO = NOON - timedelta(days=500)


def test_an_open_finding_stays_however_old():
    cluster = a_cluster()
    a_finding(cluster, "a", opened_at=LONG_AGO)
    a_finding(cluster, "b", opened_at=LONG_AGO, resolved_at=LONG_AGO)

    retention.tidy(now=NOON)

    assert Finding.objects.get().subject == "a"


def test_the_log_of_a_pod_goes_with_it():
    pod = a_pod(a_node(a_cluster()))
    a_crash_log(pod, "insmod: ERROR")
    pod.delete()

    retention.tidy(now=NOON)

    assert not CrashLog.objects.exists()
