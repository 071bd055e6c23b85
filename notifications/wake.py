"""A hint to route events. If it is lost, the sweep finds what waits."""

from fleet.messages.wake import Coalesced

events_soon = Coalesced("notifications.tasks.route_events", "default", at_most_every_s=0.5)
