"""Jira Service Management and Opsgenie: the Alert API (docs.opsgenie.com/docs/alert-api). One alert for each alias.

The API outlives the product: Jira Service Management has it at https://api.atlassian.com/jsm/ops/integration.
"""

from datetime import datetime, timedelta
from urllib.parse import quote

from notifications.channels.base import (
    JSON,
    ChannelRequest,
    ChannelSettings,
    DeliveryAct,
    HttpChannel,
    Notification,
    as_json,
    read_object,
    shorten,
)

PRIORITIES = {"critical": 1, "warning": 3, "note": 5}
LONGEST_MESSAGE, LONGEST_DESCRIPTION, LONGEST_ALIAS = 130, 15_000, 512


class Jira(HttpChannel):
    key = "jira"
    title = "Jira Service Management or Opsgenie"
    asks = "API key of an API integration"
    wants_address = (
        "https://api.opsgenie.com, https://api.eu.opsgenie.com or https://api.atlassian.com/jsm/ops/integration"
    )
    default_address = "https://api.opsgenie.com"
    is_pager = True
    heartbeat_min = 5
    heartbeat_hint = "a ping of the heartbeat quarterdeck-INSTANCE, which must exist there"

    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest:
        alerts = f"{target.address.rstrip('/')}/v2/alerts"
        headers = {**JSON, "Authorization": f"GenieKey {target.secret}"}
        alias = message.key[:LONGEST_ALIAS]
        note = {"source": "Quarterdeck", "note": message.happened or message.title}
        if act is DeliveryAct.RESOLVE:
            return ChannelRequest(
                f"{alerts}/{quote(alias, safe='')}/close?identifierType=alias", as_json(note), headers
            )
        if act is DeliveryAct.UPDATE and message.is_acknowledged:
            return ChannelRequest(
                f"{alerts}/{quote(alias, safe='')}/acknowledge?identifierType=alias", as_json(note), headers
            )
        body = {
            "message": shorten(message.title, LONGEST_MESSAGE),
            "alias": alias,
            "description": shorten("\n".join(message.paragraphs), LONGEST_DESCRIPTION),
            "priority": f"P{PRIORITIES[message.severity]}",
            "source": "Quarterdeck",
            "entity": message.subject,
            "tags": [value for value in (message.severity, message.cluster) if value],
            "details": dict(message.labels),
        }
        return ChannelRequest(alerts, as_json(body), headers)

    def heartbeat(self, target: ChannelSettings, *, instance: str, every: timedelta, now: datetime) -> ChannelRequest:
        """Returns a ping (docs.opsgenie.com/docs/heartbeat-api). It is accepted for an unknown heartbeat, too."""
        name = quote(f"quarterdeck-{instance}", safe="")
        headers = {**JSON, "Authorization": f"GenieKey {target.secret}"}
        return ChannelRequest(f"{target.address.rstrip('/')}/v2/heartbeats/{name}/ping", b"", headers)

    def ref_in(self, body: str) -> str:
        return str(read_object(body).get("requestId", ""))[:255]
