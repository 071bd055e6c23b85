"""What a placement costs and risks, as measured: each figure against rows that somebody can count."""

import csv
from datetime import timedelta
from io import StringIO

import pytest

from capacity.free_gpus.stranded_gpus import StrandedBy
from capacity.models import FreeGpuSample
from capacity.placements.placement_measures import measures_of_pool
from fleet.event_kinds import OPENED
from fleet.models import Bookmark, DomainEvent, GoneNode
from health.models import GpuHour
from health.sources.hours import provide_partition
from tests import make
from tests.callers import calling
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now"), pytest.mark.sqlite]
RACK = "example.com/rack"


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


@pytest.fixture
def pool():
    return make.a_pool(make.a_cluster("east"), "h200", spread_label=RACK)


def a_node(pool, name: str, rack: str = "r1"):
    return make.a_node(pool.cluster, name, pool=pool, labels={RACK: rack}, gpu_allocatable=8)


def an_hour(node, uuid: str, *, allocated_s: float | None, hour: int = 1, **given):
    provide_partition(NOON - timedelta(hours=hour))
    row = {"seen_s": 3600, "busy_s": 1800.0, "utilisation": 0.5, "temperature": 60.0, "temperature_max": 70.0} | given
    GpuHour.objects.create(
        cluster=node.cluster, node_name=node.name, uuid=uuid, gi_id="", hour=NOON - timedelta(hours=hour),
        allocated_s=allocated_s, **row,
    )  # fmt: skip


def a_failure(node, minutes: int, severity: str = "critical"):
    DomainEvent.objects.create(
        cluster=node.cluster, kind=OPENED, key="finding/1", at=NOON - timedelta(minutes=minutes), severity=severity,
        node_uid=node.uid, node_name=node.name,
    )  # fmt: skip


def test_heat_is_compared_between_full_and_other_nodes(bob, pool):
    full, part = a_node(pool, "full"), a_node(pool, "part")
    for name in ("a", "b"):
        an_hour(full, f"full-{name}", allocated_s=3600, temperature=80.0, temperature_max=91.0, power_watts=600.0)
        an_hour(full, f"full-{name}", allocated_s=None, hour=2, temperature=1.0)  # nothing tells the allocation
        an_hour(full, f"full-{name}", allocated_s=3600, hour=30)  # too old
    an_hour(part, "part-a", allocated_s=3600, throttled=0.25)
    an_hour(part, "part-b", allocated_s=0, utilisation=0.45, busy_s=1500.0, temperature=30.0)  # too little work

    found = measures_of_pool(pool, bob, now=NOON)

    assert (found.full.node_hours, found.full.temperature, found.full.temperature_max) == (1, 80.0, 91.0)
    assert (found.full.power_watts, found.full.throttled) == (600.0, None)
    assert (found.other.node_hours, found.other.temperature, found.other.throttled) == (1, 60.0, 0.25)
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text
    assert "25.0 %" in text


def flat(answer: dict, beginning: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in answer.items():
        found |= flat(value, f"{beginning}{name}.") if isinstance(value, dict) else {f"{beginning}{name}": value}
    return found


def test_the_file_has_the_figures_of_rest(bob, pool):
    full, part = a_node(pool, "full"), a_node(pool, "part", "r2")
    an_hour(full, "full-a", allocated_s=3600, temperature=80.0, power_watts=600.0)
    an_hour(part, "part-a", allocated_s=1800, throttled=0.25)
    a_failure(full, 100)
    stranded = {StrandedBy.CPU: 5}
    FreeGpuSample.objects.create(pool=pool, hour=NOON - timedelta(hours=2), free=8.0, usable=3.0, stranded=stranded)
    for number in range(2):
        make.a_pod(full, f"web-{number}", gpus=2, started_at=NOON - timedelta(hours=3))
    answer = calling(bob).get(f"/api/v1/pools/{pool.pk}/placement").json()
    content = visiting(bob).get(f"/pools/{pool.pk}/placement.csv").content.decode()
    rows = list(csv.DictReader(StringIO(content)))

    expected = flat(answer["placement"]) | flat(answer["measures"])
    written = {row["figure"]: row["value"] for row in rows}

    # Names, which the file has as subjects or units, and lists, of which the file has the members.
    beside = {
        "classes", "spread.worst", "worst.node", "worst.name", "failures.days", "shared", "service_level",
    }  # fmt: skip
    assert expected.keys() - written.keys() == beside
    assert {name: written[name] for name in expected.keys() & written.keys()} == {
        name: "unknown" if value is None else str(value) for name, value in expected.items() if name in written
    }
    assert ("Deployment team-a/model", "2", "of 2 pods in r1") in [
        (row["subject"], row["value"], row["unit"]) for row in rows
    ]
    assert (written["numa"], written["full_nodes.power_watts"], written["stranded_gpus"]) == ("unknown", "600.0", "5.0")


def test_failures_within_ten_minutes_are_one_and_belong_to_a_domain_or_not(bob, pool, monkeypatch):
    monkeypatch.setattr("capacity.placements.placement_measures.FAILURES_AT_MOST", 5)
    first, second, third = a_node(pool, "a"), a_node(pool, "b"), a_node(pool, "c", "r2")
    for node, minutes in ((first, 100), (second, 95), (first, 60), (third, 55), (third, 10)):
        a_failure(node, minutes)
    a_failure(first, 5, "warning")
    for minutes in range(3):
        a_failure(make.a_node(pool.cluster, f"noisy-{minutes}"), minutes)  # of no pool, and newer

    found = measures_of_pool(pool, bob, now=NOON).failures

    assert (found.failures, found.in_one_domain, found.elsewhere, found.most_nodes) == (3, 1, 1, 2)
    assert (found.unknown, found.is_cut) == (0, False)
    pool.spread_label = ""
    found = measures_of_pool(pool, bob, now=NOON).failures
    assert (found.in_one_domain, found.elsewhere) == (None, 2)


def test_failures_of_gone_nodes_and_of_nodes_without_the_label_have_no_known_domain(bob, pool, settings, monkeypatch):
    settings.KEEP_HISTORY_DAYS = 7
    monkeypatch.setattr("capacity.placements.placement_measures.FAILURES_AT_MOST", 7)
    first, second = a_node(pool, "a"), a_node(pool, "b")
    bare, gone = make.a_node(pool.cluster, "bare", pool=pool), a_node(pool, "gone")
    GoneNode.objects.create(
        cluster=pool.cluster, node_id=gone.pk, uid=gone.uid, name="gone", gone_at=NOON
    ).pools.add(pool)  # fmt: skip
    for node, minutes in ((gone, 101), (first, 100), (bare, 60), (second, 59), (first, 31), (second, 30), (bare, 30)):
        a_failure(node, minutes)
    gone.delete()

    found = measures_of_pool(pool, bob, now=NOON).failures

    assert (found.failures, found.in_one_domain, found.elsewhere, found.unknown) == (3, 1, 0, 2)
    assert (found.days, found.is_cut) == (7, False)
    a_failure(first, 1)
    assert measures_of_pool(pool, bob, now=NOON).failures.is_cut
    text = page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text
    assert "Failures of 7 days" in text
    pool.cluster.added_at = NOON - timedelta(hours=30)
    found = measures_of_pool(pool, bob, now=NOON).failures
    assert (found.days, found.hours) == (2, 30)  # nobody watched before
    pool.cluster.save()
    assert "Failures of 30 hours" in page(visiting(bob), f"/parts/pools/{pool.pk}/placement").text
    assert "of unknown domains" in text


def test_a_failed_node_costs_whole_jobs_and_warm_up(bob, pool):
    first, second = a_node(pool, "a"), a_node(pool, "b")
    times = {"started_at": NOON - timedelta(hours=4), "ready_since": NOON - timedelta(hours=3)}
    for node in (first, second):
        make.a_pod(node, f"train-{node.name}", gpus=4, owner_kind="PyTorchJob", owner_name="train", **times)
    make.a_pod(second, "chat", gpus=2, owner_kind="ReplicaSet", owner_name="chat", **times)
    make.a_pod(first, "web", gpus=0, is_tenant=True, owner_kind="ReplicaSet", owner_name="web", **times)
    make.a_pod(a_node(pool, "web"), "web-2", gpus=0, is_tenant=True, owner_kind="ReplicaSet", owner_name="web")
    a_node(pool, "idle")
    make.a_pod(second, "numa", gpus=2, owner_kind="Job", owner_name="numa", phase="Failed",
               status="TopologyAffinityError")  # fmt: skip
    FreeGpuSample.objects.create(
        pool=pool, hour=NOON - timedelta(hours=3), free=6, usable=4, stranded={StrandedBy.CPU: 2}
    )

    answer = calling(bob).get(f"/api/v1/pools/{pool.pk}/placement").json()["measures"]

    assert answer["worst"] == {
        "node": second.pk, "name": "b", "workloads": 2, "gpu_hours_lost": 32.0, "gpu_hours_loading": 10.0,
    }  # fmt: skip
    assert (answer["mean_loss"], answer["numa_refusals"], answer["stranded_gpus"]) == (20.5, 1, 2.0), (
        "of four nodes with GPUs"
    )
    assert len(measures_of_pool(pool, bob, now=NOON).losses) == 2
    Bookmark.objects.filter(kind="pods").update(listed_at=None)
    assert calling(bob).get(f"/api/v1/pools/{pool.pk}/placement").json() == {"placement": None, "measures": None}
