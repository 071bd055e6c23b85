"""Makes up the usage of the days before a new demo: its pages of usage and cost need days, and a visitor has minutes.

The pods of now are taken back in time, and their GPUs are as busy as now by day and less at night. The hours go
through the product's own recording (`health.sources.usage`). Each product gets a list price.
"""

import os
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from capacity.models import GpuPrice
from capacity.usage.list_prices import list_prices_of
from capacity.usage.price_changes import put_price
from fleet.models import Cluster, Node
from health.sources import hours, usage
from health.sources.allocated_hours import AllocatedHour
from health.telemetry.hours import HOUR_S, GpuHourSums
from people.management.commands.create_demo_people import LOOPBACK

PAST_DAYS = 14
WAIT_S = 120.0
BY_DAY = range(7, 20)  # hours, UTC
# Part of its pods that a namespace has by day and at night, and part of the load of now that they have then.
PODS = {"batch": (0.3, 1.0), "vision": (1.0, 0.6), "search": (1.0, 0.8), "students": (1.0, 0.0), "robotics": (0.0, 0.0)}
LOADS = {"chat": (1.0, 0.3), "search": (0.6, 0.03), "vision": (0.5, 0.2), "notebooks": (0.0, 0.0)}
ALWAYS = (1.0, 1.0)
IDLE_POWER = 0.25  # of the power of now


def part_of(parts: dict[str, tuple[float, float]], namespace: str, hour: datetime) -> float:
    """Return the part of this hour: that of the day, or that of nights and weekends."""
    by_day, at_night = parts.get(namespace, ALWAYS)
    return by_day if hour.hour in BY_DAY and hour.weekday() < 5 else at_night


def was_there(pod_uid: str, namespace: str, hour: datetime) -> bool:
    """Say whether a pod of now is taken to have run in that hour; always the same pods of a namespace."""
    return zlib.crc32(pod_uid.encode()) % 100 < 100 * part_of(PODS, namespace, hour)


def hours_before(now: datetime, days: int = PAST_DAYS) -> Iterator[datetime]:
    """Yield the whole hours of the days before, the oldest first, and those of today that are over."""
    this_hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = this_hour.replace(hour=0) - timedelta(days=days)
    for number in range(int((this_hour - first) / timedelta(hours=1))):
        yield first + timedelta(hours=number)


def hour_of(seen: AllocatedHour, hour: datetime) -> AllocatedHour:
    """Return the allocation of now as that of the whole hour, without the pods that were not there."""
    span = (hour, hour + timedelta(hours=1))
    held = {
        node: [
            replace(each, since=span[0], until=span[1])
            for each in holders
            if was_there(each.row.pod_uid, each.row.namespace, hour)
        ]
        for node, holders in seen.held.items()
    }
    spans = {
        device: [(row, span) for row, _ in those if was_there(row.pod_uid, row.namespace, hour)]
        for device, those in seen.spans.items()
    }
    return AllocatedHour(is_seen=True, held=held, spans=spans, uuids=seen.uuids)


def measured_in(seen: AllocatedHour, measured: Iterable[GpuHourSums], hour: datetime) -> Iterator[GpuHourSums]:
    """Yield the telemetry of now as that of the hour: the load of each GPU goes with its pod's namespace."""
    for sums in measured:
        index = seen.index_of(sums.device)
        those = seen.spans.get((sums.device.node_name, -1 if index is None else index, sums.device.gi_id), ())
        there = [row.namespace for row, _ in those if was_there(row.pod_uid, row.namespace, hour)]
        load = part_of(LOADS, there[0], hour) if there else 0.0
        yield replace(
            sums,
            seen_s=float(HOUR_S),
            utilisation=times(sums.utilisation, load),
            tensor=times(sums.tensor, load),
            bandwidth=times(sums.bandwidth, load),
            power_watts=times(sums.power_watts, IDLE_POWER + (1 - IDLE_POWER) * load),
        )


def times(value: float | None, factor: float) -> float | None:
    """Return the product, or None for what is not exported."""
    return None if value is None else value * factor


def seen_now(cluster_id: int, *, now: datetime) -> tuple[AllocatedHour, Sequence[GpuHourSums]] | None:
    """Return the allocation and the telemetry of now, or None before both are there."""
    tally = hours.load_tally(cluster_id)
    measured = list(tally.rows()) if tally else []
    seen = AllocatedHour.of(cluster_id, now - timedelta(hours=1), now=now)
    return (seen, measured) if measured and seen.spans else None


def put_prices(cluster_id: int, *, now: datetime) -> None:
    """Put the lowest list price of each product into the book, unless a person has put any price there."""
    if GpuPrice.objects.exists():
        return
    products = Node.objects.filter(cluster=cluster_id).exclude(gpu_product="").order_by()
    for product in sorted(set(products.values_list("gpu_product", flat=True))):
        for price in list_prices_of([product])[:1]:
            put_price(
                pool=None, product=product, capacity_type="", currency="USD", amount=Decimal(price.usd),
                valid_from=now.date() - timedelta(days=PAST_DAYS), source=f"{price.source.title}, {price.instance}",
                actor="demo", now=now,
            )  # fmt: skip


def record_hours(
    cluster_id: int, seen: AllocatedHour, measured: Sequence[GpuHourSums], past: Iterable[datetime]
) -> None:
    """Record each hour that is not recorded yet, without what other apps add to an hour: they tell only of now."""
    usage.RECORDED.clear()
    for hour in past:
        usage.record(cluster_id, hour, hour_of(seen, hour), measured_in(seen, measured, hour))


class Command(BaseCommand):
    help = "Make up the usage of the 14 days before a new demo, from the pods and the telemetry of now."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("cluster", help="its name")

    def handle(self, *args: Any, cluster: str, **_: Any) -> None:
        if not set(settings.ALLOWED_HOSTS) <= LOOPBACK:
            raise CommandError("Made-up usage is allowed only on a loopback server.")
        os.nice(10)
        cluster_id = Cluster.objects.get(name=cluster).pk
        until = time.monotonic() + WAIT_S
        while (seen := seen_now(cluster_id, now=timezone.now())) is None:
            if time.monotonic() > until:
                raise CommandError(f"No telemetry of {cluster} came in {WAIT_S:.0f} s: no usage is made up.")
            time.sleep(1)
        put_prices(cluster_id, now=timezone.now())
        record_hours(cluster_id, *seen, hours_before(timezone.now()))
