"""The days before a new demo: whole hours of all GPUs, once, by the product's own recording."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Sum

from capacity.management.commands import demo_usage
from health.models import NamespaceUsage, UsageDay
from health.sources import usage
from health.sources.allocated_hours import AllocatedHour
from health.telemetry.hours import GpuHourSums
from health.telemetry.snapshot import GpuDevice
from health.telemetry.usage import GpuUse
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("twice", [False, True])
def test_all_hours_of_the_days_before_are_recorded_once(monkeypatch, twice):
    monkeypatch.setattr(usage, "RECORDED", [])
    node = make.a_node(make.a_cluster(), "n1", gpus=2, physical_gpus=2, created_at=NOON - timedelta(days=100))
    for board, namespace in enumerate(["chat", "notebooks"]):
        make.a_placement(node, namespace, namespace=namespace, since=NOON - timedelta(days=50), until=NOON,
                         boards=[board], resources={"nvidia.com/gpu": 1})  # fmt: skip
    measured = [
        GpuHourSums(GpuDevice("n1", board, f"GPU-{board}"), 60.0, 60.0, 0.9, None, None, None, None, 400.0, None, None)
        for board in range(2)
    ]
    seen = AllocatedHour.of(node.cluster_id, NOON - timedelta(hours=1), now=NOON)

    for _ in range(1 + twice):
        demo_usage.record_hours(node.cluster_id, seen, measured, demo_usage.hours_before(NOON))

    hours = 24 * demo_usage.PAST_DAYS + NOON.hour
    assert sum(row.hours.bit_count() for row in UsageDay.objects.all()) == hours
    sums = NamespaceUsage.objects.values("namespace").order_by("namespace")
    found = {row["namespace"]: row for row in sums.annotate(**{use: Sum(use.value) for use in GpuUse})}
    assert sum(row[use] for row in found.values() for use in GpuUse) == pytest.approx(2 * hours)
    assert found["notebooks"]["idle"] == found["chat"]["used"] == hours


def test_no_usage_is_made_up_on_a_server_for_others(settings):
    settings.ALLOWED_HOSTS = ["quarterdeck.example.org"]
    make.a_cluster("east")

    with pytest.raises(CommandError, match="loopback"):
        call_command("demo_usage", "east")

    assert not UsageDay.objects.exists()
