"""The weekly report: its parts are the whole, and each workload has its hours, cost, energy and advice."""

import csv
from datetime import timedelta

import pytest

from capacity.usage.weekly_report import reserved_of, weekly_report
from health.models import OwnerUsage, WorkloadActivity
from health.telemetry.usage import GpuUse
from tests import make
from tests.callers import calling
from tests.capacity.usage.test_usage_report import some_usage
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite, pytest.mark.usefixtures("now")]
TODAY = NOON.date()


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


@pytest.fixture
def week():
    """Two pools, three workloads and free GPUs, in this week and the one before."""
    east = make.a_cluster("east")
    dear = make.a_pool(east, "dear", price_per_gpu_hour="2")
    plain = make.a_pool(east, "plain")
    some_usage(east, str(dear.pk), ("ml", "Job/train"), used=10, idle=30)
    some_usage(east, str(dear.pk), ("ml", "Job/train"), used=5, day=TODAY - timedelta(days=3))
    some_usage(east, str(plain.pk), ("web", "Deployment/chat"), used=20, idle=2, unmeasured=1)
    some_usage(east, str(plain.pk), ("lab", ""), idle=1.5)
    some_usage(east, str(plain.pk), unallocated=40, out_of_service=8, unknown=1)
    some_usage(east, str(plain.pk), ("ml", "Job/train"), used=7, day=TODAY - timedelta(days=8))
    sums = {"busy_hours": 10, "busy_sum": 1, "memory_hours": 10, "fits_half": 10, "energy_hours": 10, "energy_kwh": 4}
    row = {"cluster": east, "day": TODAY, "pools": str(plain.pk)}
    WorkloadActivity.objects.create(**row, namespace="web", workload="Deployment/chat", **sums)
    return east


@pytest.mark.parametrize("most", [1, 2, 100])
def test_workloads_free_hours_and_the_rest_are_the_whole(bob, week, most):
    found = weekly_report(bob, now=NOON, most=most)

    amounts = [each.line.amount for each in found.lines] + [found.rest]
    kept = OwnerUsage.objects.filter(day__gt=TODAY - timedelta(days=7))
    for use in GpuUse:
        whole = sum(kept.values_list(use.value, flat=True))
        assert sum(each.hours[use] for each in amounts) == pytest.approx(whole) == found.report.total.hours[use]
    assert sum(sum(each.costs.values()) for each in amounts) == pytest.approx(found.report.total.cost)
    assert sum(each.unpriced for each in amounts) == pytest.approx(found.report.total.unpriced)
    assert sum(map(reserved_of, amounts)) == pytest.approx(69.5)
    assert found.before.total == 7


def test_each_workload_has_its_own_advice_cost_and_energy(bob, week):
    lines = {each.line.name: each for each in weekly_report(bob, now=NOON, most=100).lines}

    assert [lines[name].advice.pattern for name in ("Job/train", "Deployment/chat", "lab", "not allocated")] == [
        "idle", "low", "idle", "free",
    ]  # fmt: skip
    assert lines["Job/train"].line.amount.cost_idle == 60
    assert lines["Deployment/chat"].line.amount.cost_idle is None
    assert (lines["Deployment/chat"].activity.energy_kwh, lines["Job/train"].activity.energy_kwh) == (4, None)
    assert "half of the card's memory was enough" in lines["Deployment/chat"].advice.text


def test_page_file_and_rest_say_the_same(bob, week):
    viewer = visiting(bob)

    text = page(viewer, "/usage/report").text
    rows = viewer.get("/usage/report.csv").content.decode().splitlines()
    body = calling(bob).get("/api/v1/usage/report?limit=2").json()

    assert "118.5 GPU-hours, 69.5 reserved by pods" in text
    assert "Job/train ml · east 45.0 15.0 30.0 0.0 0.0 90.00 60.00 –" in text
    assert rows[0].startswith("cluster,namespace,workload,pools,gpu_hours_reserved,used,idle")
    assert rows[1].startswith("east,ml,Job/train,dear,45.0,15.0,30.0")
    assert len(rows) == 5
    first = next(csv.DictReader(rows))
    assert (first["cost_idle"], first["cost_used"]) == ("60.0", "30.0")
    assert "cost 60.00" in text
    assert [(each["workload"], each["pattern"]) for each in body["workloads"]] == [
        ("Job/train", "idle"), ("Deployment/chat", "low"),
    ]  # fmt: skip
    assert body["rest"]["gpu_hours"] == pytest.approx(50.5)


def test_energy_names_the_hours_that_it_is_of(bob, week):
    viewer = visiting(bob)

    text = page(viewer, "/usage/report").text
    rows = csv.DictReader(viewer.get("/usage/report.csv").content.decode().splitlines())
    chat = next(row for row in rows if row["workload"] == "Deployment/chat")
    of_rest = calling(bob).get("/api/v1/usage/report").json()["workloads"]

    assert "4.0 kWh in 10.0 measured GPU-hours" in text
    assert "– – 4.0 in 10.0 h" in text
    assert (chat["energy_kwh"], chat["energy_gpu_hours"]) == ("4.0", "10.0")
    energy = {each["workload"]: (each["energy_kwh"], each["energy_gpu_hours"]) for each in of_rest}
    assert (energy["Deployment/chat"], energy["Job/train"]) == ((4, 10), (None, 0))


def test_the_hours_of_a_row_are_all_hours_that_its_cost_is_of(bob, week):
    """Hours of no pod have a column: out of service and unknown ones too."""
    viewer = visiting(bob)

    assert "not allocated east 0.0 0.0 0.0 0.0 49.0 " in page(viewer, "/usage/report").text
    for each in weekly_report(bob, now=NOON, most=100).lines:
        assert each.reserved + each.not_reserved == pytest.approx(each.line.amount.total)


def test_a_viewer_of_another_cluster_sees_no_hours(week):
    eve = make.a_user("eve", role="viewer", on=make.a_cluster("west"))

    assert "No usage is recorded" in page(visiting(eve), "/usage/report").text
    assert calling(eve).get("/api/v1/usage/report").json()["workloads"] == []
