"""Puts prices into the book, and takes them out. The price on a pool's own page is in the book as well."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django.db import transaction

from capacity.models import GpuPrice
from capacity.usage.price_book import BEGINNING, CAPACITY_TYPES
from fleet.models import Pool
from fleet.pools.changes import change_pool
from people.models import AuditEntry, User
from people.rights import Permission, scope_of, why_not


class BadPrice(ValueError):
    """An input that makes no price, with its field."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(sentence)
        self.field = field


def may_price(user: User, pool: Pool | None) -> str:
    """Returns why the user may not change a price of the pool, or of a product. Blank: they may."""
    if pool is None:
        return why_not(user, Permission.ADMINISTER)
    where = f"pool {pool.cluster.name}/{pool.name}"
    return why_not(user, Permission.ADMINISTER, cluster_id=pool.cluster_id, pool_id=pool.pk, where=where)


def may_price_anything(user: User) -> str:
    """Returns why the user may change no price at all. Blank: they may change some."""
    return why_not(user, Permission.ADMINISTER) if scope_of(user, Permission.ADMINISTER).nowhere else ""


def put_price(
    *,
    pool: Pool | None,
    product: str,
    capacity_type: str,
    currency: str,
    amount: Decimal | None,
    valid_from: date,
    source: str,
    actor: str,
    now: datetime,
) -> GpuPrice:
    """Saves a price, in place of one of the same day. The newest price of a pool is also on its page.

    :raises BadPrice: when the input makes no price
    """
    currency = currency.strip().upper()
    if (pool is None) == (not product):
        raise BadPrice("product", "Choose a pool or a product.")
    if pool is not None and capacity_type:
        raise BadPrice("capacity_type", "A pool's own price holds for all its nodes: leave this empty.")
    if capacity_type and capacity_type not in CAPACITY_TYPES:
        raise BadPrice("capacity_type", f"Choose one of {', '.join(CAPACITY_TYPES)}.")
    if currency and not (len(currency) == 3 and currency.isascii() and currency.isalpha()):
        raise BadPrice("currency", "Three letters, as EUR. Empty: your one currency.")
    if amount is None or not amount.is_finite() or amount < 0:
        raise BadPrice("amount", "A number of 0 or more. 0: these GPU-hours cost nothing.")
    if valid_from > now.date():
        raise BadPrice("valid_from", "A price starts today or earlier.")
    given = {"currency": currency, "amount": amount, "source": source, "by": actor, "at": now}
    with transaction.atomic():
        if pool is not None:
            _keep_undated(pool, pool.price_per_gpu_hour, actor=actor, now=now)
        row, _ = GpuPrice.objects.update_or_create(
            pool=pool, product=product, capacity_type=capacity_type, valid_from=valid_from, defaults=given
        )
        _record(row, "price.put", actor=actor, now=now)
        if pool is not None:
            _show_on_page(pool, actor=actor, now=now)
    return row


def remove_price(row: GpuPrice, *, actor: str, now: datetime) -> None:
    """Removes a price: the one before it holds on. Nothing happens where somebody was first."""
    with transaction.atomic():
        if GpuPrice.objects.filter(pk=row.pk).delete()[0]:
            _record(row, "price.remove", actor=actor, now=now)
            if row.pool is not None:
                _show_on_page(row.pool, actor=actor, now=now)


def record_change(pool: Pool, before: Mapping[str, Any], actor: str, now: datetime) -> None:
    """Books a price that was changed on the pool's page: it holds from today, and the one before until then."""
    name = "price_per_gpu_hour"
    if name not in before or before[name] == pool.price_per_gpu_hour:
        return
    _keep_undated(pool, before[name], actor=actor, now=now)
    rows = GpuPrice.objects.filter(pool=pool)
    current = rows.filter(valid_from__lte=now.date()).order_by("-valid_from").first()
    if current is None or current.amount == pool.price_per_gpu_hour:
        return  # the first price of a pool holds for every day
    given = {"amount": pool.price_per_gpu_hour, "currency": current.currency, "source": "", "by": actor, "at": now}
    rows.update_or_create(pool=pool, valid_from=now.date(), defaults=given)


def _keep_undated(pool: Pool, amount: Decimal | None, *, actor: str, now: datetime) -> None:
    """Books the price that a pool had before its first dated one."""
    if amount is not None and not GpuPrice.objects.filter(pool=pool).exists():
        GpuPrice.objects.create(pool=pool, amount=amount, valid_from=BEGINNING, by=actor, at=now)


def _show_on_page(pool: Pool, *, actor: str, now: datetime) -> None:
    row = GpuPrice.objects.filter(pool=pool, valid_from__lte=now.date()).order_by("-valid_from").first()
    change_pool(pool, actor=actor, now=now, price_per_gpu_hour=row.amount if row else None)


def _record(row: GpuPrice, verb: str, *, actor: str, now: datetime) -> None:
    evidence = {
        "pool": row.pool.name if row.pool else "", "product": row.product, "capacity_type": row.capacity_type,
        "amount": str(row.amount), "currency": row.currency, "valid_from": row.valid_from.isoformat(),
    }  # fmt: skip
    AuditEntry.record("prices", verb=verb, actor=actor, evidence=evidence, now=now)
