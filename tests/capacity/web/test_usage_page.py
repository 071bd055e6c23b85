"""The page "Usage and cost", its file and its REST answer."""

import csv
from datetime import timedelta
from io import StringIO

import pytest

from fleet.models import Cluster
from health.models import UsageDay
from health.telemetry.usage import GpuUse
from tests import make
from tests.callers import calling
from tests.capacity.usage.test_usage_report import TODAY, some_usage
from tests.make import NOON
from tests.pages import HOSTILE, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


@pytest.fixture
def viewer(bob):
    return visiting(bob)


@pytest.fixture
def pool():
    return make.a_pool(make.a_cluster("east"), "h200", price_per_gpu_hour=2)


def test_an_empty_page_says_when_and_what_to_do(viewer):
    shown = page(viewer, "/usage")

    assert "No usage is recorded yet." in shown.text
    assert {"/clusters", "/pools"} <= set(shown.links)


def test_shows_hours_cost_and_the_way_to_the_owner(viewer, pool):
    UsageDay.objects.create(cluster=pool.cluster, day=TODAY, hours=1)
    some_usage(pool.cluster, str(pool.pk), ("ml", "Job/train"), used=6, idle=2)
    some_usage(pool.cluster, str(pool.pk), unallocated=4)

    shown = page(viewer, "/usage")

    assert "12.0 GPU-hours · cost 24.00 in your currency" in shown.text
    assert "2.0 GPU-hours 16.7 % · cost 4.00" in shown.text, "idle"
    below = next(link for link in shown.links if "by=namespace" in link)
    owners = page(viewer, below)
    deeper = next(link for link in owners.links if "by=workload" in link)
    assert "not allocated" in owners.text
    assert "Job/train" in page(viewer, deeper).text


def test_a_pool_without_a_price_has_hours_and_a_suggestion(viewer, pool):
    free = make.a_pool(pool.cluster, "b200")
    node = make.a_node(pool.cluster, "n1", pool=free, gpu_product="NVIDIA-B200")
    make.counted()
    some_usage(pool.cluster, str(free.pk), ("ml", "Job/train"), used=6)

    shown = page(viewer, "/usage")

    assert node.pools.get() == free
    assert "14.24 · AWS us-east-1 p6-b200, 2026-07-20" in shown.text
    assert f"/pools/{free.pk}/edit" not in shown.links, "a viewer sets no price"
    root = visiting(make.a_user("root", role="admin"))
    assert f"/pools/{free.pk}/edit" in page(root, "/usage").links


def test_a_day_without_a_record_is_no_data_and_not_zero(viewer, bob, pool):
    """On the page, in the file and in REST: one recorded hour of a week, and it began before the cluster was added."""
    UsageDay.objects.create(cluster=pool.cluster, day=TODAY, hours=1 << 10)
    Cluster.objects.update(added_at=NOON - timedelta(minutes=90))
    some_usage(pool.cluster, str(pool.pk), unallocated=4)

    text = page(viewer, "/usage").text
    rows = list(csv.DictReader(StringIO(viewer.get("/usage.csv?by=day").content.decode())))
    body = calling(bob).get("/api/v1/usage?by=day").json()

    assert "1 hour of clusters is recorded. 1 hour of these is inferred from start times of pods" in text
    assert f"{TODAY - timedelta(days=1)} 0 no data {TODAY} 1 4.0" in text
    assert {(row["recorded_hours"], row["gpu_hours"], row["unallocated"]) for row in rows[:-1]} == {("0", "", "")}
    assert (rows[-1]["recorded_hours"], rows[-1]["gpu_hours"]) == ("1", "4.0")
    assert (body["coverage"]["recorded"], body["coverage"]["inferred"]) == (1, 1)
    for lines in (body["days"], body["lines"]):
        assert [line["amount"] and line["amount"]["gpu_hours"] for line in lines] == [*[None] * 6, 4]


def test_an_own_range_is_shown_and_a_bad_one_is_refused(viewer, pool):
    some_usage(pool.cluster, str(pool.pk), day=TODAY - timedelta(days=40), unallocated=4)
    day = (TODAY - timedelta(days=40)).isoformat()

    assert "4.0 GPU-hours" in page(viewer, f"/usage?period=own&first={day}&last={day}").text
    for query in ("first=2026-02-30&last=x", f"first={TODAY}&last={day}", f"first=1999-01-01&last={TODAY}"):
        assert "The page shows the last 7 days." in page(viewer, f"/usage?period=own&{query}").text
        assert viewer.get(f"/usage.csv?period=own&{query}").status_code == 400


def test_hostile_names_are_text(viewer, pool):
    some_usage(pool.cluster, str(pool.pk), (HOSTILE, f"Job/{HOSTILE}"), used=1)

    for by in ("namespace", "workload"):
        assert HOSTILE in page(viewer, f"/usage?by={by}").text


def test_the_file_and_rest_have_the_numbers_of_the_page(viewer, bob, pool):
    some_usage(pool.cluster, str(pool.pk), ("ml", "Job/train"), used=6, idle=2)
    some_usage(pool.cluster, str(pool.pk), unallocated=4)

    rows = list(csv.DictReader(StringIO(viewer.get("/usage.csv?by=workload").content.decode())))
    days = list(csv.DictReader(StringIO(viewer.get("/usage.csv?by=day").content.decode())))
    answer = calling(bob).get("/api/v1/usage?by=workload&limit=1").json()

    assert [(row["workload"], row["gpu_hours"], row["cost"], row["cost_idle"]) for row in rows] == [
        ("Job/train", "8.0", "16.0", "4.0"), ("", "4.0", "8.0", "0.0"),
    ]  # fmt: skip
    assert [row["cost_unallocated"] for row in rows] == ["0.0", "8.0"]
    uses = [f"cost_{use}" for use in GpuUse]
    assert [sum(float(row[use]) for use in uses) for row in rows] == [16.0, 8.0], "the costs of all uses are the cost"
    by_use = answer["total"]["cost_by_use"]
    assert (by_use["used"], by_use["unallocated"], sum(by_use.values())) == (12, 8, 24)
    assert (len(days), days[-1]["gpu_hours"], days[0]["gpu_hours"]) == (7, "12.0", "")
    assert (answer["total"]["gpu_hours"], answer["total"]["cost"], answer["has_more"]) == (12, 24, True)
    (line,) = answer["lines"]
    assert (line["workload"], line["amount"]["by_use"]["idle"]) == ("Job/train", 2)
    assert list(line["amount"]["by_use"]) == [use.value for use in GpuUse]
    assert calling(bob).get("/api/v1/usage?period=own").status_code == 400
    assert calling(bob).get("/api/v1/usage?group=x").status_code == 400


def test_the_weekly_report_is_one_file_without_external_parts(viewer, pool):
    some_usage(pool.cluster, str(pool.pk), (HOSTILE, "Job/train"), used=6, rated=6, under_used=3, quarantined=1)

    answer = viewer.get("/usage/report.html")

    assert answer["Content-Disposition"].startswith('attachment; filename="usage-report-')
    html = answer.content.decode()
    assert "<link" not in html
    assert "src=" not in html.replace(HOSTILE, "").replace("src=x", "")
    assert "Under-used, estimate" in html
    assert "Quarantined" in html
    assert "<script" not in html
    assert "use-sums svg { display: none; }" in html, "its keys have no colours, and no size"
