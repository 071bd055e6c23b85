"""The audit trail for pages and REST: its filters, and its entries as JSON lines."""

import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import django_filters as filters
from asgiref.sync import sync_to_async
from django.core.exceptions import ValidationError
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_filters.fields import IsoDateTimeField

from people.models import AuditEntry

MOST_KEY = 2**63 - 1
YEARS = range(1970, 9000)  # that every database and time zone can express
FIELDS = ("id", "at", "actor", "verb", "subject", "number", "reason", "evidence", "previous_hash", "hash")
AT_ONCE = 500  # entries of one query
# A transaction that writes an entry ends within this time. Later entries wait in files, so that a reader that
# continues after the last id misses none.
SETTLED = timedelta(minutes=2)


class AuditInstantField(IsoDateTimeField):
    def clean(self, value: Any) -> datetime | None:
        try:
            instant: datetime | None = super().clean(value)
        except OverflowError as error:
            raise ValidationError("This time is out of range.") from error
        if instant is not None and instant.year not in YEARS:
            raise ValidationError("This time is out of range.")
        return instant


class InstantFilter(filters.IsoDateTimeFilter):
    field_class = AuditInstantField


class KeyFilter(filters.NumberFilter):
    def __init__(self, **given: Any) -> None:
        super().__init__(field_name="pk", min_value=1, max_value=MOST_KEY, decimal_places=0, **given)


class AuditFilters(filters.FilterSet):
    actor = filters.CharFilter(max_length=150, label="User name, or `engine`.")
    subject = filters.CharFilter(max_length=64, label="The object, such as `plan-7` or `pool:3`.")
    kind = filters.CharFilter(method="of_kind", max_length=32, label="Kind of the object, such as `plan`.")
    verb = filters.CharFilter(max_length=64, label="The act, such as `approve` or `person.grant`.")
    since = InstantFilter(field_name="at", lookup_expr="gte", label="From this time on, ISO 8601.")
    until = InstantFilter(field_name="at", lookup_expr="lt", label="Before this time, ISO 8601.")
    after = KeyFilter(lookup_expr="gt", label="Entries with a greater id.")
    before = KeyFilter(lookup_expr="lt", label="Entries with a smaller id.")

    class Meta:
        model = AuditEntry
        fields: list[str] = []

    def of_kind(self, entries: QuerySet[AuditEntry], name: str, kind: str) -> QuerySet[AuditEntry]:
        return entries.filter(Q(subject__startswith=f"{kind}:") | Q(subject__startswith=f"{kind}-"))


async def json_lines(entries: QuerySet[AuditEntry], *, most: int) -> AsyncIterator[str]:
    """Yields the settled entries as JSON lines, the oldest first, `most` at most."""
    settled = entries.filter(at__lte=timezone.now() - SETTLED).order_by("pk")
    last, left = 0, most
    while left:
        # In the request's thread, which owns the database connection.
        rows = await sync_to_async(partial(_slice, settled.filter(pk__gt=last), min(left, AT_ONCE)))()
        if not rows:
            return
        yield "".join(f"{json.dumps(row, cls=DjangoJSONEncoder)}\n" for row in rows)
        last, left = rows[-1]["id"], left - len(rows)


def _slice(entries: QuerySet[AuditEntry], most: int) -> list[dict[str, Any]]:
    return list(entries.values(*FIELDS)[:most])
