"""A Prometheus taken away in the shell."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from health.models import TelemetrySource
from health.sources import snapshots
from health.telemetry.snapshot import GpuDevice
from people.models import AuditEntry
from tests import make
from tests.health.inbox.test_twins import told

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis")]


def remove(*asked: str) -> str:
    written = StringIO()
    call_command("remove_prometheus", *asked, stdout=written)
    return written.getvalue()


def test_nobody_asks_it_and_what_it_said_is_forgotten(django_capture_on_commit_callbacks):
    cluster = make.a_cluster("eu-1")
    make.a_source(cluster, url="https://one.example.org")
    snapshots.keep(cluster.pk, told(GpuDevice("gpu-1", 0, "GPU-0"), temperature_celsius=[61]))

    with django_capture_on_commit_callbacks(execute=True):
        said = remove("eu-1")

    assert said == "Nobody asks https://one.example.org for eu-1 any more.\n"
    assert not TelemetrySource.objects.exists()
    assert snapshots.newest(cluster.pk) is None
    assert AuditEntry.objects.filter(verb="telemetry.remove").exists()


def test_another_one_stays():
    make.a_source(make.a_cluster("eu-1"), url="https://one.example.org")

    assert "nothing was changed" in remove("eu-1", "--address", "http://127.0.0.1:9090")
    assert TelemetrySource.objects.exists()


def test_of_a_cluster_that_nobody_knows_it_says_so():
    with pytest.raises(CommandError, match="no cluster named eu-9"):
        remove("eu-9")
