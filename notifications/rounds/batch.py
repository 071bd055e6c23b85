"""Some events of the outbox, and the deliveries and conversations that they lead to."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property

from django.conf import settings

from edges.digests import digest
from fleet.event_kinds import EventPhase
from fleet.models import DomainEvent
from notifications.channels.alertmanager import Alertmanager
from notifications.channels.base import DeliveryAct, Notification
from notifications.models import Channel, Conversation, Delivery, Preference, Route
from notifications.models.conversation import QUIET
from notifications.rounds.subjects import Subjects
from notifications.route_match import first_match

AT_ONCE = 200  # rows per statement
STORM = 20  # conversations that a channel begins in STORM_WITHIN, each with a message; more become a digest
STORM_WITHIN = timedelta(minutes=5)
DIGEST_EVERY = timedelta(minutes=1)
DIGEST_AFTER = timedelta(seconds=10)  # time in which further messages join a digest


@dataclass
class RoutedBatch:
    """Some events with the rows that their deliveries need, by a fixed number of queries."""

    events: Sequence[DomainEvent]
    now: datetime
    escalating: Sequence[Conversation] = ()  # conversations that go to their second channel
    deliveries: list[Delivery] = field(default_factory=list)
    begun: list[Conversation] = field(default_factory=list)
    ended: list[Conversation] = field(default_factory=list)
    changed: list[Conversation] = field(default_factory=list)
    woken: set[int] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)  # keys of subjects that no longer need their second channel

    def route(self, event: DomainEvent) -> None:
        phase = event.its_kind.phase
        if phase is EventPhase.RECORD:
            return
        message = self._subjects.message(event)
        if message is None:
            return
        known = self._open[event.key]
        if phase is EventPhase.RESOLVE:
            self._end(event, message)
            return
        if event.its_kind.is_answered:
            self.answered.add(event.key)
        for conversation in known.values():
            self._update(event, message, conversation)
        if phase is EventPhase.UPDATE or not self._subjects.needs_attention(event):
            return
        if route := first_match(self._routes, self._subjects.place_of(event)):
            self._begin_in_channels(event, message, route)

    def _begin_in_channels(self, event: DomainEvent, message: Notification, route: Route) -> None:
        known = self._open[event.key]
        for channel in route.its_channels:
            if channel.pk not in known:
                conversation = self._begin(event, event.key, message, channel, route)
                conversation.route = route
                self._ask(event, message, conversation)
            elif known[channel.pk].digest_key and event.its_kind.phase is EventPhase.WORSE:
                self._take_out(event, message, known[channel.pk], route)
        self._write_to_people(event, message)

    def _write_to_people(self, event: DomainEvent, message: Notification) -> None:
        """Begins conversations by e-mail with the people who want such events and may see this one."""
        properties, (cluster_id, pool_ids) = self._subjects.place_of(event), self._subjects.ids_of(event)
        for preference in self._preferences:
            channel = preference.channel
            is_wanted = channel and channel.pk not in self._open[event.key] and preference.wants(properties)
            if channel and is_wanted and preference.may_see(cluster_id, pool_ids):
                self._begin(event, event.key, message, channel, None)

    def escalate(self, conversation: Conversation, happened: str) -> None:
        """Begins a conversation in the second channel of its route, unless there is one."""
        route = conversation.route
        channel = route and route.escalates_to
        if route and channel and channel.is_on and channel.pk not in self._open[conversation.key]:
            message = Notification.read(conversation.message | {"happened": happened})
            self._begin(None, conversation.key, message, channel, route)

    def _begin(
        self, event: DomainEvent | None, key: str, message: Notification, channel: Channel, route: Route | None
    ) -> Conversation:
        conversation = Conversation(
            channel=channel, key=key, opened_at=self.now, message=message.written(),
            refreshed_at=self.now if isinstance(channel.its_kind, Alertmanager) else None,
        )  # fmt: skip
        self._open[key][channel.pk] = conversation
        self.begun.append(conversation)
        held_until = self._held_until(message, channel, route)
        name = route.name if route else ""
        if held_until or self._is_storm(channel):
            conversation.digest_key = self._digest(channel, name, held_until)
        else:
            self._recent[channel.pk] += 1
            self._deliver(event, message, channel, DeliveryAct.OPEN, key=key, route_name=name)
        return conversation

    def _take_out(self, event: DomainEvent, message: Notification, conversation: Conversation, route: Route) -> None:
        """Sends a subject that became worse by itself, although a digest has it, unless that digest still holds it."""
        channel = conversation.channel
        if self._held_until(message, channel, route) or self._is_storm(channel):
            return
        self._ended_digests.add((conversation.channel_id, conversation.digest_key))
        conversation.digest_key = ""
        self._recent[channel.pk] += 1
        self._deliver(event, message, channel, DeliveryAct.OPEN, route_name=route.name)

    def _ask(self, event: DomainEvent, message: Notification, conversation: Conversation) -> None:
        """Sets when the second channel is used without an answer: after the end of quiet hours that hold it back."""
        route = conversation.route
        if route and route.escalates_to_id and not event.its_kind.is_answered and not message.is_acknowledged:
            begins_at = self._held_until(message, conversation.channel, route) or self.now
            conversation.escalates_at = begins_at + route.escalates_after
            self.answered.discard(event.key)

    def _update(self, event: DomainEvent, message: Notification, conversation: Conversation) -> None:
        conversation.message = message.written()
        if event.kind == "finding.unassigned":
            self._ask(event, message, conversation)
        if conversation.pk:
            self.changed.append(conversation)
        if not conversation.digest_key:
            after = self._rest(message, conversation)
            self._deliver(event, message, conversation.channel, DeliveryAct.UPDATE, after=after)

    def _rest(self, message: Notification, conversation: Conversation) -> timedelta:
        """Returns how long a change waits for the end of quiet hours, where each change is a message to people."""
        channel = conversation.channel
        is_message = channel.its_kind.repeats_changes
        held_until = self._held_until(message, channel, conversation.route) if is_message else None
        return held_until - self.now if held_until else timedelta(0)

    def _end(self, event: DomainEvent, message: Notification) -> None:
        """Ends the conversations about the subject. The end of a plan ends those about its stages, too."""
        keys = [event.key, *(key for key in self._open if key.startswith(f"{event.key}/"))]
        self.answered.update(keys)
        for conversation in [each for key in keys for each in self._open.pop(key, {}).values()]:
            conversation.ended_at = self.now
            if conversation.pk:
                self.ended.append(conversation)
            if conversation.digest_key:
                self._ended_digests.add((conversation.channel_id, conversation.digest_key))
            else:
                told = Notification.read(message.written() | {"key": self._key(conversation, message, event)})
                after = self._rest(message, conversation)
                self._deliver(event, told, conversation.channel, DeliveryAct.RESOLVE, key=conversation.key, after=after)

    def _key(self, conversation: Conversation, message: Notification, event: DomainEvent) -> str:
        """Returns the receiver's key: of a stage whose plan has ended, the stage's."""
        return message.key + conversation.key.removeprefix(event.key)

    def _deliver(
        self,
        event: DomainEvent | None,
        message: Notification,
        channel: Channel,
        act: DeliveryAct,
        *,
        key: str = "",
        route_name: str = "",
        after: timedelta = timedelta(0),
    ) -> Delivery:
        written = message.written()
        delivery = Delivery(
            channel=channel, channel_name=channel.name, route_name=route_name, event=event,
            key=key or (event.key if event else message.key), act=act, message=written,
            digest=digest(written), created_at=self.now, next_try_at=self.now + after,
        )  # fmt: skip
        self.deliveries.append(delivery)
        self.woken.add(channel.pk)
        return delivery

    def write(self) -> None:
        """Writes conversations and deliveries."""
        Conversation.objects.filter(pk__in=[each.pk for each in self.ended]).update(ended_at=self.now)
        columns = ["message", "digest_key", "escalates_at"]
        Conversation.objects.bulk_update(self.changed, columns, batch_size=AT_ONCE)
        Conversation.objects.bulk_create(self.begun, batch_size=AT_ONCE)
        Conversation.objects.filter(key__in=self.answered).update(escalates_at=None)
        for channel_id, key in sorted(self._ended_digests):
            self._end_digest(channel_id, key)
        self._release_held()
        Delivery.objects.bulk_create(self.deliveries, batch_size=AT_ONCE)

    def _release_held(self) -> None:
        """Sends changes that quiet hours hold back, where a new message of the same key must not wait for them."""
        keys: dict[int, set[str]] = defaultdict(set)
        for delivery in self.deliveries:
            if delivery.act == DeliveryAct.OPEN and delivery.channel:
                keys[delivery.channel.pk].add(delivery.key)
        for channel_id, those in keys.items():
            held = Delivery.objects.waiting().filter(channel=channel_id, key__in=those, attempts=0)
            held.filter(next_try_at__gt=self.now).update(next_try_at=self.now)

    # Storms and quiet hours

    def _is_storm(self, channel: Channel) -> bool:
        return channel.its_kind.has_storms and self._recent[channel.pk] >= STORM

    def _held_until(self, message: Notification, channel: Channel, route: Route | None) -> datetime | None:
        """Returns the end of the quiet hours that hold a message back. Machines get each event at once."""
        is_read = channel.its_kind.has_storms
        return route.held_until(message.severity, now=self.now) if route and is_read else None

    def _digest(self, channel: Channel, route_name: str, held_until: datetime | None) -> str:
        """Returns the key of the next digest of the channel: that of quiet hours, or that of a storm.

        A digest of a storm comes a minute after the last one.
        """
        if (channel.pk, held_until) not in self._digests:
            name = f"{QUIET}{channel.pk}/" if held_until else f"digest/{channel.pk}/"
            known = Delivery.objects.filter(channel=channel, act=DeliveryAct.DIGEST, key__startswith=name)
            known = known.filter(next_try_at=held_until) if held_until else known
            last = known.order_by("-pk").first()
            if last is not None and last.state == "waiting" and not last.attempts:
                key = last.key
            else:
                key = f"{name}{(held_until or self.now).timestamp():.0f}"
                message = self._digest_message(key)
                rest = max(DIGEST_AFTER, last.created_at + DIGEST_EVERY - self.now) if last else DIGEST_AFTER
                rest = held_until - self.now if held_until else rest
                self._deliver(None, message, channel, DeliveryAct.DIGEST, key=key, route_name=route_name, after=rest)
                self.begun.append(Conversation(channel=channel, key=key, opened_at=self.now, message=message.written()))
            self._digests[channel.pk, held_until] = key
        return self._digests[channel.pk, held_until]

    def _end_digest(self, channel_id: int, key: str) -> None:
        """Ends a digest once each subject that it names has ended."""
        opened = Conversation.objects.open().filter(channel=channel_id)
        if opened.filter(digest_key=key).exists():
            return
        conversation = opened.filter(key=key).select_related("channel").first()
        if conversation is not None and conversation.end(now=self.now):
            message = Notification.read(conversation.message)
            self._deliver(None, message, conversation.channel, DeliveryAct.RESOLVE, key=key)

    def _digest_message(self, key: str) -> Notification:
        return Notification(
            key=f"quarterdeck/{settings.INSTANCE}/{key}", kind="digest", title="Many at once", severity="note",
            at=self.now, since=self.now,
        )  # fmt: skip

    @cached_property
    def _subjects(self) -> Subjects:
        return Subjects(self.events, self.now)

    @cached_property
    def _routes(self) -> Sequence[Route]:
        return list(Route.in_order().prefetch_related("channels"))

    @cached_property
    def _preferences(self) -> Sequence[Preference]:
        rows = Preference.objects.filter(person__is_active=True, channel__is_on=True).order_by("pk")
        return list(rows.select_related("channel", "person").prefetch_related("person__bindings"))

    @cached_property
    def _open(self) -> dict[str, dict[int, Conversation]]:
        """Returns open conversations by key and channel, with those about stages of plans that end."""
        keys = {event.key for event in self.events} | {row.key for row in self.escalating}
        rows = Conversation.objects.open().filter(key__in=keys)
        for event in self.events:
            if event.kind == "plan.finished":
                rows |= Conversation.objects.open().filter(key__startswith=f"{event.key}/")
        found: dict[str, dict[int, Conversation]] = defaultdict(dict)
        for row in rows.select_related("channel", "route"):
            found[row.key][row.channel_id] = row
        return found

    @cached_property
    def _recent(self) -> Counter[int]:
        """Returns by channel how many conversations began with a message of their own lately."""
        rows = Delivery.objects.filter(act=DeliveryAct.OPEN, created_at__gt=self.now - STORM_WITHIN)
        return Counter(rows.values_list("channel", flat=True))

    @cached_property
    def _digests(self) -> dict[tuple[int, datetime | None], str]:
        return {}

    @cached_property
    def _ended_digests(self) -> set[tuple[int, str]]:
        return set()
