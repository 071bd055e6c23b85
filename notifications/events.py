"""The filters of domain events, their saved views, and the channels that got them, for pages and REST."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

import django_filters as filters
from django.db.models import Q
from django.http import QueryDict
from django.utils import timezone

from fleet.api.filters import TEXT_AT_MOST, Text
from fleet.event_kinds import EVENT_KINDS, FAMILIES
from fleet.models import Cluster, DomainEvent, GoneNode, Node, Pool
from fleet.models.domain_event import DomainEventQuerySet
from health.models.finding import SEVERITIES
from health.saved_views import ViewTable
from notifications.models import Delivery
from notifications.models.delivery import KEEP_LOG
from people.audit_trail import MOST_KEY, InstantFilter, KeyFilter
from people.models import User
from people.rights import Permission, scope_of

MOST_HOURS = 24 * 400
UNKNOWN = "not known"  # the log of that time is deleted
OBJECT = re.compile(r"(finding|plan|operation|case)(?:/|#| #?)([0-9]{1,18})", re.ASCII)  # no name of a node
KIND_CHOICES = [*FAMILIES.items(), *((kind.key, kind.title) for kind in EVENT_KINDS.values())]
OF_PLANS = [key for key in EVENT_KINDS if key.startswith(("plan.", "traffic."))]


class EventFilters(filters.FilterSet):
    cluster = Text(method="of_cluster", label="Name of the cluster.")
    pool = filters.NumberFilter(
        method="of_pool", label="Id of a pool: events about its nodes, and about stages of plans in it.",
        min_value=1, max_value=MOST_KEY, decimal_places=0,
    )  # fmt: skip
    kind = filters.ChoiceFilter(method="of_kind", choices=KIND_CHOICES, label="A kind, or all of `finding`, `plan` …")
    severity = filters.ChoiceFilter(choices=SEVERITIES)
    object = Text(method="about", label="The name of a node, or an object such as `finding/12`.")
    hours = filters.NumberFilter(
        method="of_hours", label="Events of the last hours.", min_value=1, max_value=MOST_HOURS, decimal_places=0
    )
    since = InstantFilter(field_name="at", lookup_expr="gte", label="From this time on, ISO 8601.")
    until = InstantFilter(field_name="at", lookup_expr="lt", label="Before this time, ISO 8601.")

    def of_cluster(self, rows: DomainEventQuerySet, _name: str, value: str) -> DomainEventQuerySet:
        # The key as a value: the planner then knows how many events the cluster has.
        return rows.filter(cluster=Cluster.objects.filter(name=value).values_list("pk", flat=True).first() or 0)

    def of_pool(self, rows: DomainEventQuerySet, _name: str, value: int) -> DomainEventQuerySet:
        # Values, so that the planner knows them, and reads no event for a pool that there is not.
        cluster = Pool.objects.visible_to(self.request.user).filter(pk=value).values_list("cluster", flat=True).first()
        if cluster is None:
            return rows.none()
        return rows.filter(rows.in_pools([int(value)]) | Q(pool_id=int(value)), cluster=cluster)

    def of_kind(self, rows: DomainEventQuerySet, _name: str, value: str) -> DomainEventQuerySet:
        if value in EVENT_KINDS:
            return rows.filter(kind=value)
        return rows.filter(kind__in=[key for key in EVENT_KINDS if key.startswith(f"{value}.")])

    def about(self, rows: DomainEventQuerySet, _name: str, value: str) -> DomainEventQuerySet:
        if match := OBJECT.fullmatch(value.strip()):
            key = f"{match[1]}/{int(match[2])}"
            below = Q(kind__in=OF_PLANS, key__startswith=f"{key}/") if match[1] == "plan" else Q(pk__in=[])
            return rows.filter(Q(key=key) | below)
        there = Node.objects.filter(name=value.strip()).order_by().values_list("uid")
        gone = GoneNode.objects.filter(name=value.strip()).order_by().values_list("uid")
        return rows.filter(node_uid__in=[uid for (uid,) in there.union(gone)])

    def of_hours(self, rows: DomainEventQuerySet, _name: str, value: int) -> DomainEventQuerySet:
        return rows.filter(at__gte=timezone.now() - timedelta(hours=int(value)))


class EventPageFilters(EventFilters):
    before = KeyFilter(lookup_expr="lt", label="Events with a smaller id: the older ones.")


@dataclass(frozen=True)
class EventView:
    """A filter as the address has it, without the place in the list."""

    given: Sequence[tuple[str, str]]

    @classmethod
    def read(cls, query: QueryDict) -> "EventView":
        texts = ((name, query.get(name, "").strip()[:TEXT_AT_MOST]) for name in EventFilters.base_filters)
        return cls([(name, text) for name, text in texts if text])

    def query(self) -> str:
        return urlencode(self.given, errors="replace")


EVENT_VIEWS = ViewTable("events", EventView.read)


def receivers_of(events: Collection[DomainEvent], user: User, *, now: datetime) -> Mapping[int, list[str]] | None:
    """Returns the channels that got a message about each event itself, so not those of digests. One query.

    None: the user may not see the log of all.
    """
    if not scope_of(user, Permission.SEE).everywhere:
        return None
    kept_since = now - KEEP_LOG
    found: dict[int, set[str]] = {event.pk: {UNKNOWN} if event.at < kept_since else set() for event in events}
    rows = Delivery.objects.filter(event__in=[event.pk for event in events], created_at__gte=kept_since).order_by()
    for event_id, channel in rows.values_list("event_id", "channel_name"):
        found[event_id or 0].add(channel)
    return {event_id: sorted(names) for event_id, names in found.items()}
