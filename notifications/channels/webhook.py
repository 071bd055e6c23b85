"""A signed webhook."""

from datetime import datetime, timedelta

from edges.webhook_signatures import signed_headers
from notifications.channels.base import (
    ChannelRequest,
    ChannelSettings,
    DeliveryAct,
    HttpChannel,
    Notification,
    as_json,
)


class Webhook(HttpChannel):
    key = "webhook"
    title = "Signed webhook"
    asks = "signing secret: whsec_ and 24 to 64 bytes in Base64"
    wants_address = "address that receives the POST"
    has_storms = False  # a machine reads each event
    heartbeat_min = 5
    heartbeat_hint = "a signed request of the type heartbeat"
    exports_audit = True

    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest:
        body = as_json(
            {"type": message.kind, "timestamp": message.at.isoformat(), "act": act, "data": message.written()}
        )
        return ChannelRequest(target.address, body, signed_headers(target.secret, delivery, body, now=now))

    def heartbeat(self, target: ChannelSettings, *, instance: str, every: timedelta, now: datetime) -> ChannelRequest:
        data = {"instance": instance, "every_s": every.total_seconds()}
        body = as_json({"type": "heartbeat", "timestamp": now.isoformat(), "data": data})
        name = f"heartbeat-{now.timestamp():.0f}"
        return ChannelRequest(target.address, body, signed_headers(target.secret, name, body, now=now))
