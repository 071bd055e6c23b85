"""The finding about small workloads on whole GPUs."""

from datetime import timedelta

import pytest

from capacity.usage.small_workload_findings import small_workloads
from health.models import WorkloadActivity
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def an_activity(
    cluster, workload: str, *, hours: float = 30, fits: float = 1, busy: float = 0.1, days: int = 1
) -> None:
    WorkloadActivity.objects.create(
        cluster=cluster, day=(NOON - timedelta(days=days)).date(), namespace="team-a", workload=workload,
        memory_hours=hours, fits_quarter=hours * fits, fits_half=hours, busy_hours=hours, busy_sum=hours * busy,
    )  # fmt: skip


def test_workloads_that_a_quarter_of_a_card_would_serve_are_listed_once():
    cluster = make.a_cluster("east")
    an_activity(cluster, "Deployment/small", hours=15)
    an_activity(cluster, "Deployment/small", hours=15, days=2)
    an_activity(cluster, "Deployment/busy", busy=0.5)
    an_activity(cluster, "Deployment/large", fits=0.9)
    an_activity(cluster, "Deployment/short", hours=20)
    an_activity(cluster, "Deployment/old", days=9)

    [(subject, problem)] = small_workloads(cluster, now=NOON)

    assert (subject, problem.title) == ("requests of workloads", "Small workloads had whole GPUs in east")
    assert [(item.label, item.value) for item in problem.evidence] == [
        ("Deployment/small in team-a", "a quarter of the memory was enough, 10% busy")
    ]


def test_without_hours_nothing_is_reported():
    assert list(small_workloads(make.a_cluster("east"), now=NOON)) == []
