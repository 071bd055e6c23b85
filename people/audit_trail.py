"""The audit trail for pages and REST: its filters, and its entries as JSON lines."""

import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import django_filters as filters
from asgiref.sync import sync_to_async
from django.core.exceptions import ValidationError
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
    def __init__(self, field_name: str = "pk", **given: Any) -> None:
        super().__init__(field_name=field_name, min_value=1, max_value=MOST_KEY, decimal_places=0, **given)


class AuditFilters(filters.FilterSet):
    actor = filters.CharFilter(max_length=150, label="User name, or `engine`.")
    subject = filters.CharFilter(max_length=64, label="The object, such as `plan-7` or `pool:3`.")
    kind = filters.CharFilter(method="of_kind", max_length=32, label="Kind of the object, such as `plan`.")
    verb = filters.CharFilter(max_length=64, label="The act, such as `approve` or `person.grant`.")
    since = InstantFilter(field_name="at", lookup_expr="gte", label="From this time on, ISO 8601.")
    until = InstantFilter(field_name="at", lookup_expr="lt", label="Before this time, ISO 8601.")
    after = KeyFilter(lookup_expr="gt", label="Entries with a greater id.")
    before = KeyFilter(lookup_expr="lt", label="Entries with a smaller id.")

    def of_kind(self, entries: QuerySet[AuditEntry], name: str, kind: str) -> QuerySet[AuditEntry]:
        of_one = Q(subject__startswith=f"{kind}:") | Q(subject__startswith=f"{kind}-")
        return entries.filter(of_one | Q(subject=kind))


def settled_rows(entries: QuerySet[AuditEntry], *, after: int, most: int, now: datetime) -> list[dict[str, Any]]:
    """Returns the rows after an id, in the order of ids, and none behind an entry that is not settled."""
    unsettled = min(AuditEntry.objects.filter(at__gt=now - SETTLED).values_list("pk", flat=True), default=MOST_KEY)
    return list(entries.filter(pk__gt=after, pk__lt=unsettled).order_by("pk").values(*FIELDS)[:most])


def line_of(row: Mapping[str, Any]) -> str:
    """Returns a row as JSON in one line, with all digits of the time, so that a reader can compute its hash."""
    return json.dumps({**row, "at": row["at"].isoformat(timespec="microseconds")}, separators=(",", ":"))


async def json_lines(entries: QuerySet[AuditEntry], *, most: int) -> AsyncIterator[str]:
    """Yields the settled entries as JSON lines, the oldest first, `most` at most."""
    now = timezone.now()
    last, left = 0, most
    while left:
        # In the request's thread, which owns the database connection.
        rows = await sync_to_async(settled_rows)(entries, after=last, most=min(left, AT_ONCE), now=now)
        if not rows:
            return
        yield "".join(f"{line_of(row)}\n" for row in rows)
        last, left = rows[-1]["id"], left - len(rows)
