"""Channels, routes and deliveries, as pages and REST show them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Q, QuerySet

from fleet.models import Cluster, Pool
from health.inbox.queries import titles
from notifications.models import AuditFormat, Channel, ChannelState, Conversation, Delivery, DeliveryState, Route
from notifications.models.delivery import KEEP_LOG
from notifications.route_match import CASE, OPERATION, PLAN, TRAFFIC, EventProperties, first_match
from operations.models import Operation
from people.models import AuditEntry
from rollouts.models import Plan
from rollouts.models.traffic import traffic_key
from wording.numbers import count


@dataclass(frozen=True)
class ChannelRow:
    """A channel with the state of its deliveries."""

    channel: Channel
    waiting: int
    dead: int  # in the log, that nobody has sent again
    routes: Sequence[str]

    @property
    def state(self) -> str:
        if not self.channel.is_on:
            return "off"
        return ChannelState.FAILING.value if self.channel.is_failing else self.channel.state


@dataclass(frozen=True)
class Recipients:
    """The recipients of an event: the route that decides, and its channels."""

    route: Route | None  # None: no route names traffic
    channels: Sequence[Channel]
    held_until: datetime | None = None  # the end of quiet hours that hold the message back; None: sent at once

    @property
    def second(self) -> Channel | None:
        channel = self.route and self.route.escalates_to
        return channel if channel and channel.is_on else None

    @property
    def sentence(self) -> str:
        if self.route is None:
            return "Nobody: no route names traffic."
        if not self.channels:
            return f"Nobody: route “{self.route.name}” matches first and has no channel that is switched on."
        parts = [f"Route “{self.route.name}”: {', '.join(channel.name for channel in self.channels)}."]
        if self.held_until and self.route.quiet_hours:
            zone = self.route.quiet_hours.zone
            parts.append(f"Held back by quiet hours; in a digest at {self.held_until:%Y-%m-%d %H:%M} {zone}.")
        if self.second:
            minutes = count(self.route.escalates_after_min, "minute")
            parts.append(f"Then {self.second.name}, if it is not delivered, or nobody answers within {minutes}.")
        return " ".join(parts)


def channel_rows(channels: Collection[Channel] | None = None) -> list[ChannelRow]:
    """Returns the rows of channels; None means all. Four queries."""
    rows = list(Channel.objects.shared()) if channels is None else list(channels)
    counted = Delivery.objects.filter(channel__in=rows).order_by().values_list("channel")
    sums = {"waiting": _count(DeliveryState.WAITING), "dead": _count(DeliveryState.DEAD)}
    numbers = {key: (waiting, dead) for key, waiting, dead in counted.annotate(**sums)}
    routes: dict[int, list[str]] = {row.pk: [] for row in rows}
    for name, key in Route.objects.filter(channels__in=rows).values_list("name", "channels"):
        routes[key].append(name)
    for name, key in Route.objects.filter(escalates_to__in=rows).values_list("name", "escalates_to"):
        routes[key].append(f"{name} (second)")
    return [ChannelRow(row, *numbers.get(row.pk, (0, 0)), routes=routes[row.pk]) for row in rows]


def _count(state: DeliveryState) -> Count:
    return Count("pk", filter=Q(state=state))


def routes_in_order() -> list[Route]:
    return list(Route.in_order().select_related("escalates_to").prefetch_related("channels"))


def silences_of_key(key: str) -> list[tuple[Channel, Mapping[str, str]]]:
    """Returns the silences of the alert about a subject, with the Alertmanager that has them. One query."""
    name = f"quarterdeck/{settings.INSTANCE}/{key}"
    channels = Channel.objects.shared().filter(is_on=True, silences__isnull=False).order_by("name")
    return [(channel, each) for channel in channels for each in channel.silences or () if each["key"] == name]


def refusing_silence(key: str) -> QuerySet[Channel]:
    """Returns the Alertmanagers that have the alert of a muted subject, and no silence for its mute."""
    without = Conversation.objects.muted().filter(key=key, silence_until=None)
    return Channel.objects.filter(conversations__in=without, is_on=True).exclude(mutes_sentence="").order_by("name")


def recipients_of(*, where: str, severity: str, kind: str, at: datetime) -> Recipients:
    """Returns who gets an event of this kind at this time. `where` is a cluster, or a pool as `cluster/pool`."""
    cluster, _, pool = where.partition("/")
    classes = Pool.objects.filter(cluster__name=cluster, name=pool).values_list("workload_class", flat=True)
    place = EventProperties(cluster, severity, kind, (pool,) if pool else (), tuple(classes) if pool else ())
    route = first_match(routes_in_order(), place)
    if route is None:
        return Recipients(None, ())
    is_read = any(channel.its_kind.has_storms for channel in route.its_channels)  # others get each event at once
    return Recipients(route, route.its_channels, route.held_until(severity, now=at) if is_read else None)


def route_places() -> list[str]:
    """Returns the names that a route may match: clusters, and pools as `cluster/pool`. Two queries."""
    clusters = list(Cluster.objects.order_by("name").values_list("name", flat=True))
    pools = Pool.objects.order_by("cluster__name", "name").values_list("cluster__name", "name")
    return [*clusters, *(f"{cluster}/{pool}" for cluster, pool in pools)]


def known_kinds() -> Mapping[str, str]:
    """Returns the kinds that a route may match, with their titles."""
    rules = dict(sorted(titles().items(), key=lambda item: item[1]))
    return {PLAN: "Plans", OPERATION: "Operations", CASE: "Cases", TRAFFIC: "Traffic of pools", **rules}


def deliveries(*, state: str = "", channel: str = "") -> QuerySet[Delivery]:
    """Returns the delivery log, newest first."""
    rows = Delivery.objects.select_related("channel", "event")
    rows = rows.filter(state=state) if state else rows
    return rows.filter(channel_name=channel) if channel else rows


def traffic_calls(plan: Plan) -> QuerySet[Delivery]:
    """Returns the calls of the traffic hook for a plan, newest first."""
    since = plan.sealed_at or plan.created_at
    return deliveries().filter(created_at__gte=since, key__startswith=traffic_key(plan.pk))


def lost_requests(operation: Operation, *, now: datetime) -> Sequence[str]:
    """Returns sentences about the requests of a drain to owners that reached no channel. Three queries.

    Requests that are older than the log of deliveries are left out.
    """
    routed = dict(operation.owner_events.filter(at__gte=now - KEEP_LOG).values_list("pk", "routed_at"))
    states: dict[int | None, set[str]] = defaultdict(set)
    for event, state in Delivery.objects.filter(event__in=routed).order_by().values_list("event", "state"):
        states[event].add(state)
    digests = Conversation.objects.filter(key=operation.event_key).exclude(digest_key="")
    without = [event for event, at in routed.items() if at and not states[event]]
    dead = [event for event in routed if states[event] == {DeliveryState.DEAD.value}]
    lost = {
        "are not sent yet": [event for event, at in routed.items() if at is None],
        "no route sends to a channel": [] if without and digests.exists() else without,
        "no channel accepted": dead,
    }
    return [f"Messages to owners that {why}: {len(events)} of {len(routed)}." for why, events in lost.items() if events]


def offered_places() -> list[tuple[str, str]]:
    return [(place, place) for place in route_places()]


def offered_kinds() -> list[tuple[str, str]]:
    return list(known_kinds().items())


def offered_channels() -> list[tuple[str, str]]:
    return [(name, name) for name in Channel.objects.shared().order_by("name").values_list("name", flat=True)]


@dataclass(frozen=True)
class AuditExport:
    """A channel that exports decisions, and whether it is up to date."""

    channel: Channel
    has_more: bool  # more decisions are not accepted yet

    @property
    def state(self) -> str:
        if not self.channel.is_on:
            return "off"
        if self.channel.audit_sentence:
            return ChannelState.FAILING.value
        return (ChannelState.WORKING if self.channel.audit_at else ChannelState.UNUSED).value


def audit_exports() -> list[AuditExport]:
    """Returns the channels that export decisions, by name. Two queries."""
    newest = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    return [
        AuditExport(row, row.audit_after < newest) for row in Channel.objects.exclude(audit_format=AuditFormat.NONE)
    ]
