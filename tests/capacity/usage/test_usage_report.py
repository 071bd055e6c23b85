"""The usage of a period: the lines of every grouping are the whole, and a cost needs a price."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from capacity.free_gpus.stranded_gpus import StrandedBy
from capacity.models import FreeGpuSample, WorkloadOwner
from capacity.usage import workload_owners
from capacity.usage.list_prices import list_prices_of
from capacity.usage.usage_filter import GROUPINGS, ORDERINGS, UsageFilter
from capacity.usage.usage_lines import UsageAmount, UsePart
from capacity.usage.usage_report import usage_report
from capacity.web.usage_days import known_part
from fleet.models import ClusterNamespace, Pod, Workload
from health.models import NamespaceUsage, OwnerUsage, UsageDay
from health.telemetry.usage import GpuUse
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]
TODAY = NOON.date()
USES = [use.value for use in GpuUse]


@pytest.fixture
def bob():
    return make.a_user("bob", role="viewer")


def a_sample(pool, *, day: date = TODAY, hour: int = 12, free: float, usable: float, **stranded: float):
    """A sample of free GPUs at the end of an hour of the day; 24: its last hour."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    FreeGpuSample.objects.create(
        pool=pool, hour=begin + timedelta(hours=hour), free=free, usable=usable, stranded=stranded
    )


def some_usage(cluster, pools: str = "", owner: tuple[str, str] = ("", ""), *, day: date = TODAY, **hours: float):
    """GPU-hours of an owner, with the sums of its namespace."""
    OwnerUsage.objects.create(cluster=cluster, day=day, pools=pools, namespace=owner[0], workload=owner[1], **hours)
    row, _ = NamespaceUsage.objects.get_or_create(cluster=cluster, day=day, pools=pools, namespace=owner[0])
    for use, number in hours.items():
        setattr(row, use, getattr(row, use) + number)
    row.save()


def report(user, *, most: int = 1000, **wanted):
    return usage_report(user, UsageFilter(**wanted), now=NOON, most=most)


def test_the_lines_of_every_grouping_and_the_days_add_up_to_the_rows(bob):
    chance = random.Random(5)
    east, west = make.a_cluster("east"), make.a_cluster("west")
    pools = [make.a_pool(cluster, f"p{number}", price_per_gpu_hour=chance.choice([None, 0, 2, "3.5"]))
             for cluster in (east, west) for number in range(3)]  # fmt: skip
    sets = ["", "999", *(str(pool.pk) for pool in pools), f"{pools[0].pk},{pools[1].pk}"]
    keys = {(chance.choice([east, west]), TODAY - timedelta(days=chance.randrange(7)), chance.choice(sets),
             *chance.choice([("", ""), ("ml", "Job/a"), ("ml", "Job/b"), ("web", "")])) for _ in range(80)}  # fmt: skip
    for cluster, day, of, *owner in keys:
        some_usage(cluster, of, tuple(owner), day=day, **{use: chance.random() for use in USES})
    whole = Counter({use: sum(OwnerUsage.objects.values_list(use, flat=True)) for use in USES})

    found = [report(bob, by=by, ordering=order) for by in (*GROUPINGS, "day") for order in ORDERINGS]

    for each in found:
        for lines in (each.lines, each.days):
            amounts = [line.amount for line in lines]
            assert sum(one.total for one in amounts) == pytest.approx(whole.total())
            assert {use: sum(one.hours[GpuUse(use)] for one in amounts) for use in USES} == pytest.approx(dict(whole))
            assert sum(one.unpriced for one in amounts) == pytest.approx(each.total.unpriced)
            assert sum(one.cost or 0 for one in amounts) == pytest.approx(each.total.cost)


def test_a_cost_needs_one_price_and_a_free_pool_costs_nothing(bob):
    east = make.a_cluster("east")
    dear, cheap, free, unknown = (
        make.a_pool(east, name, price_per_gpu_hour=price)
        for name, price in (("dear", "4"), ("cheap", "2"), ("free", "0"), ("unknown", None))
    )
    for of in (dear, cheap, free, unknown):
        some_usage(east, str(of.pk), ("ml", "Job/a"), used=3, idle=1)
    some_usage(east, f"{dear.pk},{cheap.pk}", ("ml", "Job/a"), used=5)

    found = report(bob)

    costs = {line.name: line.amount.cost for line in found.lines}
    assert costs == {"dear": 16, "cheap": 8, "free": 0, "unknown": None, "cheap, dear": None}
    assert (found.total.cost, found.total.cost_idle, found.total.unpriced) == (24, 6, 9)
    assert [each.pool.name for each in found.unpriced] == ["unknown"]


def test_the_most_expensive_owner_comes_first_whatever_its_hours(bob):
    east = make.a_cluster("east")
    dear, cheap = (make.a_pool(east, name, price_per_gpu_hour=price) for name, price in (("dear", 9), ("cheap", 1)))
    some_usage(east, str(cheap.pk), ("many", "Job/a"), used=5)
    some_usage(east, str(dear.pk), ("few", "Job/b"), used=1)

    by_hours, by_cost = (report(bob, by="namespace", ordering=order, most=1) for order in ("-hours", "-cost"))

    assert [line.name for line in by_hours.lines] == ["many"]
    assert [line.name for line in by_cost.lines] == ["few"]
    assert by_cost.has_more


def test_a_person_of_a_pool_sees_its_hours_alone():
    east = make.a_cluster("east")
    mine, other = make.a_pool(east, "mine"), make.a_pool(east, "other")
    some_usage(east, str(mine.pk), ("ml", "Job/a"), used=3)
    some_usage(east, f"{mine.pk},{other.pk}", ("ml", "Job/a"), used=1)
    some_usage(east, str(other.pk), ("secret", "Job/b"), used=5)
    ann = make.a_user("ann", role="viewer", on=mine)

    assert report(ann).total.total == 4
    assert {line.name for line in report(ann, by="namespace").lines} == {"ml"}
    assert report(make.a_user("eve"), by="namespace").total.total == 0


def test_hours_that_nobody_recorded_are_counted(bob):
    east = make.a_cluster("east")
    UsageDay.objects.create(cluster=east, day=TODAY - timedelta(days=1), hours=0xFFFFF0, uncounted=2)
    UsageDay.objects.create(cluster=east, day=TODAY, hours=0b11111111111)

    found = report(bob).coverage

    assert (found.recorded, found.missing, found.uncounted) == (20 + 11, 0, 2), "the twelfth has just ended"
    UsageDay.objects.filter(day=TODAY).update(hours=0b11111110111)
    assert report(bob).coverage.missing == 1


def test_the_number_of_queries_does_not_grow(bob):
    east = make.a_cluster("east")
    some_usage(east, str(make.a_pool(east).pk), ("ml", "Job/a"), used=1)
    with CaptureQueriesContext(connection) as few:
        report(bob, by="workload")
    for number in range(20):
        pool = make.a_pool(make.a_cluster())
        some_usage(pool.cluster, str(pool.pk), (f"ns-{number}", "Job/a"), used=1)
    zoe = make.a_user("zoe", role="viewer")
    with CaptureQueriesContext(connection) as many:
        report(zoe, by="workload")

    assert len(many) == len(few) == 10


@pytest.mark.parametrize(
    ("product", "lowest"),
    [
        ("NVIDIA-H100-80GB-HBM3", "6.88"), ("NVIDIA-A100-SXM4-40GB", "2.74"), ("NVIDIA-A100-SXM4-80GB", "3.43"),
        ("NVIDIA-GB200", "27.04"), ("NVIDIA-B200", "14.24"), ("NVIDIA-L40S", "1.86"), ("NVIDIA-L4", "0.8"),
        ("NVIDIA-A10G", "1.01"), ("Tesla-V100-SXM2-16GB", "3.06"), ("NVIDIA-GH200-480GB", None),
        ("NVIDIA-L40", None),
    ],
)  # fmt: skip
def test_list_prices_by_product(product, lowest):
    found = list_prices_of([product])

    assert (found[0].usd if found else None) == lowest
    assert all(Decimal(each.usd) > 0 and each.source.source and each.source.date for each in found)


def test_an_amount_without_hours_costs_nothing():
    assert UsageAmount().cost == 0


def test_unallocated_hours_are_usable_or_stranded_by_the_samples_of_their_day(bob):
    pool = make.a_pool(make.a_cluster("east"), "h200", price_per_gpu_hour=2)
    yesterday = TODAY - timedelta(days=1)
    a_sample(pool, free=10, usable=2, **{StrandedBy.CORDON: 2}, cpu=4, memory=2)
    a_sample(pool, day=yesterday, hour=24, free=4, usable=4)
    some_usage(pool.cluster, str(pool.pk), unallocated=8, quarantined=3, in_repair=1)
    some_usage(pool.cluster, str(pool.pk), unallocated=5, day=yesterday)
    some_usage(pool.cluster, str(pool.pk), unallocated=7, day=TODAY - timedelta(days=2))

    total = report(bob).total

    assert total.parts == {"under_used": 0, "usable": 2 + 5, "stranded": 6, "not_split": 7}
    assert total.cost_of(UsePart.STRANDED) == 12
    assert (total.cost_of(GpuUse.QUARANTINED), total.cost_of(GpuUse.IN_REPAIR)) == (6, 2)
    (line,) = report(bob, by="namespace").lines
    assert (line.name, line.amount) == ("not allocated", total)


def test_under_used_hours_are_a_part_of_used_ones_and_old_hours_have_no_estimate(bob):
    pool = make.a_pool(make.a_cluster("east"), "h200", price_per_gpu_hour=2)
    some_usage(pool.cluster, str(pool.pk), ("ml", "Job/a"), used=10, rated=10, under_used=4)
    some_usage(pool.cluster, str(pool.pk), ("ml", "Job/old"), used=6)

    found = {line.name: line.amount for line in report(bob, by="workload").lines}

    assert (found["Job/a"].parts[UsePart.UNDER_USED], found["Job/a"].cost_of(UsePart.UNDER_USED)) == (4, 8)
    assert known_part(found["Job/old"], UsePart.UNDER_USED) is None
    total = report(bob).total
    assert (total.hours[GpuUse.USED], total.rated, total.total, total.cost) == (16, 10, 16, 32)


def test_the_parts_of_all_lines_and_days_are_the_parts_of_the_whole(bob):
    chance = random.Random(7)
    pools = [make.a_pool(make.a_cluster(), "h200", price_per_gpu_hour=chance.choice([0, 3, "1.5"])) for _ in range(3)]
    for pool in pools:
        for back in range(2):
            gpus = [chance.uniform(0, 4) for _ in range(3)]
            causes = {StrandedBy.MEMORY: gpus[1], StrandedBy.CORDON: gpus[2]}
            a_sample(pool, day=TODAY - timedelta(days=back), free=sum(gpus), usable=gpus[0], **causes)
        for back in range(3):
            day = TODAY - timedelta(days=back)
            some_usage(pool.cluster, str(pool.pk), day=day, unallocated=chance.uniform(0, 9), in_repair=chance.random())
            for owner in ("Job/a", "Job/b", ""):
                used = chance.uniform(0, 9)
                of = {"used": used, "rated": used, "under_used": used * chance.random()}
                some_usage(pool.cluster, str(pool.pk), ("ml", owner), day=day, **of)

    total = report(bob).total

    for lines in (*(report(bob, by=by).lines for by in (*GROUPINGS, "day")), report(bob).days):
        amounts = [line.amount for line in lines]
        for part in UsePart:
            assert sum(each.parts[part] for each in amounts) == pytest.approx(total.parts[part])
            assert sum(each.cost_of(part) or 0 for each in amounts) == pytest.approx(total.cost_of(part) or 0)
    free = sum(total.parts[part] for part in UsePart if part is not UsePart.UNDER_USED)
    assert free == pytest.approx(total.hours[GpuUse.UNALLOCATED])
    assert all(total.parts.values()), "the case has every part"
    assert total.parts[UsePart.UNDER_USED] < total.hours[GpuUse.USED]


def test_hours_by_owner_follow_the_label_also_when_the_pods_are_gone(bob, settings):
    settings.OWNER_LABEL = "team"
    east = make.a_cluster("east")
    node = make.a_node(east, "gpu-1")
    make.a_pod(node, "x", namespace="ml", owner_kind="Job", owner_name="a", labels={"team": "red"})
    make.a_pod(node, "y", namespace="ml", owner_kind="Job", owner_name="b", labels={"app": "y"})
    make.a_pod(node, "z", namespace="ml", owner_kind="", owner_name="", labels={"team": "red"})
    workload_owners.record(east.pk, NOON)
    Pod.objects.all().delete()
    workload_owners.record(east.pk, NOON)
    for owner, hours in (("Job/a", 5), ("Job/b", 3), ("", 2)):
        some_usage(east, "", ("ml", owner), used=hours)
    some_usage(east, "", unallocated=4)

    found = {line.name: line.amount.total for line in report(bob, by="owner").lines}

    assert found == {"red": 5, "no owner known": 5, "not allocated": 4}
    assert report(bob, by="owner", most=1).has_more
    workload_owners.tidy(before=NOON + timedelta(days=1), now=NOON)
    assert not WorkloadOwner.objects.exists()


def test_an_owner_by_label_is_of_the_topmost_owner_as_hours_are(settings):
    settings.OWNER_LABEL = "team"
    east = make.a_cluster("east")
    row = {"namespace": "ml", "owner_kind": "JobSet", "owner_name": "llama", "owner_uid": "s", "created_at": NOON}
    Workload.objects.create(cluster=east, uid="j", kind="Job", name="llama-0", changed_at=NOON, **row)
    owner = {"namespace": "ml", "owner_kind": "Job", "owner_name": "llama-0", "owner_uid": "j"}
    make.a_pod(make.a_node(east, "gpu-1"), "x", labels={"team": "red"}, **owner)

    workload_owners.record(east.pk, NOON)

    assert dict(WorkloadOwner.objects.values_list("workload", "owner")) == {"JobSet/llama": "red"}


def test_the_label_of_a_namespace_names_the_owner_of_pods_without_it(settings):
    settings.OWNER_LABEL = "team"
    east = make.a_cluster("east")
    node = make.a_node(east, "gpu-1")
    ClusterNamespace.objects.create(cluster=east, uid="u", name="ml", labels={"team": "blue"}, changed_at=NOON)
    make.a_bookmark(east, "namespaces")
    make.a_pod(node, "x", namespace="ml", owner_kind="Job", owner_name="a", labels={"team": "red"})
    make.a_pod(node, "y", namespace="ml", owner_kind="Job", owner_name="b")
    make.a_pod(node, "z", namespace="other", owner_kind="Job", owner_name="c")

    workload_owners.record(east.pk, NOON)

    assert dict(WorkloadOwner.objects.values_list("workload", "owner")) == {"Job/a": "red", "Job/b": "blue"}


def test_a_changed_label_is_the_new_owner(bob, settings):
    settings.OWNER_LABEL = "team"
    pod = make.a_pod(make.a_node(make.a_cluster("east"), "gpu-1"), "x", labels={"team": "red"})
    workload_owners.record(pod.cluster_id, NOON)
    Pod.objects.update(labels={"team": "blue"})
    workload_owners.record(pod.cluster_id, NOON + timedelta(hours=1))

    assert WorkloadOwner.objects.get().owner == "blue"
    assert {line.name for line in report(bob, by="owner").lines} == set()
