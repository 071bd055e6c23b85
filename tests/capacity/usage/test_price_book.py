"""Prices with validity: each day costs what was valid on it."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from capacity.models import GpuPrice
from capacity.usage.price_book import BookedPrice, GpuKind, HourPrice, PriceBook
from capacity.usage.price_changes import BadPrice, put_price, remove_price
from capacity.usage.usage_filter import UsageFilter
from capacity.usage.usage_report import usage_report
from fleet.pools.changes import change_pool
from tests import make
from tests.capacity.usage.test_usage_report import some_usage
from tests.make import NOON

TODAY = NOON.date()
DAY = timedelta(days=1)
H100 = "NVIDIA-H100"


def eur(amount: str) -> HourPrice:
    return HourPrice(Decimal(amount), "EUR")


def test_a_pools_own_price_comes_before_that_of_its_product_and_capacity_type():
    rows = [
        BookedPrice(date(2026, 1, 1), eur("3"), product=H100),
        BookedPrice(date(2026, 1, 1), eur("1"), product=H100, capacity_type="spot"),
        BookedPrice(date(2026, 6, 1), eur("2"), pool=1),
        BookedPrice(date(2026, 9, 1), None, pool=1),
    ]
    spot, other = GpuKind(H100, "spot"), GpuKind(H100, "reserved")
    book = PriceBook(rows, {4: eur("9")}, {1: [other], 2: [spot], 3: [spot, other], 4: [spot], 5: [GpuKind("T4")]})

    assert [book.of(1, day) for day in (date(2026, 5, 31), date(2026, 6, 1), date(2026, 9, 1))] == [
        eur("3"), eur("2"), eur("3"),
    ]  # fmt: skip
    assert book.of(2, TODAY) == eur("1")
    assert book.of(3, TODAY) is None  # its nodes have two prices
    assert book.of(4, TODAY) == eur("9")
    assert book.of(5, TODAY) is None
    assert book.of(2, date(2025, 12, 31)) is None
    assert book.ranges(date(2026, 5, 1), date(2026, 6, 30)) == [
        (date(2026, 5, 1), date(2026, 5, 31)),
        (date(2026, 6, 1), date(2026, 6, 30)),
    ]


@pytest.fixture
def pool(db):
    return make.a_pool(make.a_cluster("east"), "h100", price_per_gpu_hour="4")


@pytest.fixture
def bob(db):
    return make.a_user("bob", role="viewer")


def booked(**given):
    row = {"pool": None, "product": "", "capacity_type": "", "currency": "EUR", "source": "", "valid_from": TODAY}
    return put_price(**row | {"amount": Decimal(1), "actor": "ada", "now": NOON} | given)


def costs(user, **wanted):
    return {
        line.name: line.amount.cost_text for line in usage_report(user, UsageFilter(**wanted), now=NOON, most=50).lines
    }


def test_each_day_costs_what_its_price_was_when_the_pools_page_changes_it(bob, pool):
    for days in (0, 1, 2):
        some_usage(pool.cluster, str(pool.pk), ("ml", "Job/a"), day=TODAY - days * DAY, used=10)
    assert costs(bob) == {"h100": "120.00"}

    change_pool(pool, actor="ada", now=NOON - DAY, price_per_gpu_hour=Decimal(6))

    assert costs(bob) == {"h100": "160.00"}
    assert costs(bob, by="workload", ordering="-cost") == {"Job/a": "160.00"}
    assert [cost for cost in costs(bob, by="day").values() if cost != "0.00"] == ["40.00", "60.00", "60.00"]


def test_two_currencies_stand_side_by_side_and_are_never_added(bob, pool):
    other = make.a_pool(pool.cluster, "l4")
    booked(pool=other, amount=Decimal("0.5"), currency="usd")
    for of in (pool, other):
        some_usage(pool.cluster, str(of.pk), ("ml", "Job/a"), used=10)

    total = usage_report(bob, UsageFilter(), now=NOON).total

    assert (total.cost, total.cost_text, total.costs) == (None, "40.00 + 5.00 USD", {"": 40, "USD": 5})


def test_a_price_of_zero_costs_nothing_and_no_price_is_hours_alone(bob, pool):
    other = make.a_pool(pool.cluster, "unknown")
    booked(pool=pool, amount=Decimal(0), currency="")
    for of in (pool, other):
        some_usage(pool.cluster, str(of.pk), used=10)

    assert costs(bob) == {"h100": "0.00", "unknown": ""}
    pool.refresh_from_db()
    assert pool.price_per_gpu_hour == 0  # the pool's page shows the newest


def test_the_price_of_a_product_is_for_pools_without_their_own(bob):
    east = make.a_cluster("east")
    pool = make.a_pool(east, "spot")
    make.a_node(east, "gpu-1", pool=pool, gpu_product=H100, labels={"karpenter.sh/capacity-type": "spot"})
    booked(product=H100, amount=Decimal(3), valid_from=TODAY - 5 * DAY)
    booked(product=H100, capacity_type="spot", amount=Decimal(1), valid_from=TODAY)
    for days in (0, 1):
        some_usage(east, str(pool.pk), day=TODAY - days * DAY, used=10)

    assert costs(bob) == {"spot": "40.00 EUR"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"amount": Decimal(-1)}, "amount"),
        ({"amount": Decimal("NaN")}, "amount"),
        ({"currency": "€"}, "currency"),
        ({"valid_from": TODAY + DAY}, "valid_from"),
        ({"product": H100}, "product"),
        ({"capacity_type": "spot"}, "capacity_type"),
    ],
)
def test_what_makes_no_price_is_refused(pool, given, field):
    with pytest.raises(BadPrice) as refused:
        booked(**{"pool": pool} | given)

    assert refused.value.field == field
    assert not GpuPrice.objects.exists()


def test_a_removed_price_gives_way_to_the_one_before(pool):
    row = booked(pool=pool, amount=Decimal(7))

    remove_price(row, actor="ada", now=NOON)

    pool.refresh_from_db()
    assert pool.price_per_gpu_hour == 4


def test_a_person_sees_prices_of_their_pools_and_of_products(pool):
    other = make.a_pool(pool.cluster, "other")
    for each in (pool, other):
        booked(pool=each)
    booked(product=H100)
    ann, eve = make.a_user("ann", role="viewer", on=pool), make.a_user("eve")

    assert {row.pool_id for row in GpuPrice.objects.visible_to(ann)} == {pool.pk, None}
    assert not GpuPrice.objects.visible_to(eve).exists()
