"""PagerDuty Events API v2 (developer.pagerduty.com/docs/send-alert-event). One incident for each key."""

from datetime import datetime, timedelta

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

SEVERITIES = {"critical": "critical", "warning": "warning", "note": "info"}
LONGEST_SUMMARY = 1024


class PagerDuty(HttpChannel):
    key = "pagerduty"
    title = "PagerDuty"
    asks = "integration key of an Events API v2 integration"
    wants_address = "https://events.pagerduty.com, or https://events.eu.pagerduty.com"
    default_address = "https://events.pagerduty.com"
    is_pager = True
    heartbeat_min = 24 * 60
    heartbeat_hint = "a change event, which opens no incident"

    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest:
        url = f"{target.address.rstrip('/')}/v2/enqueue"
        body: dict[str, object] = {
            "routing_key": target.secret,
            "dedup_key": message.key,
            "event_action": _action(message, act),
        }
        if body["event_action"] == "trigger":
            body |= _alert(message)
        return ChannelRequest(url, as_json(body), JSON)

    def heartbeat(self, target: ChannelSettings, *, instance: str, every: timedelta, now: datetime) -> ChannelRequest:
        """Returns a change event, which notifies nobody (developer.pagerduty.com/docs/send-change-event)."""
        payload = {
            "summary": f"Quarterdeck {instance} can reach PagerDuty.",
            "timestamp": now.isoformat(),
            "source": "quarterdeck",
        }
        body = {"routing_key": target.secret, "payload": payload}
        return ChannelRequest(f"{target.address.rstrip('/')}/v2/change/enqueue", as_json(body), JSON)

    def ref_in(self, body: str) -> str:
        return str(read_object(body).get("dedup_key", ""))[:255]


def _action(message: Notification, act: DeliveryAct) -> str:
    if act is DeliveryAct.RESOLVE:
        return "resolve"
    return "acknowledge" if act is DeliveryAct.UPDATE and message.is_acknowledged else "trigger"


def _alert(message: Notification) -> dict[str, object]:
    details = {
        "summary": message.summary,
        "impact": message.impact,
        "next": message.next,
        "next steps": list(message.steps),
    }
    details |= {"happened": message.happened} if message.happened else {}
    alert: dict[str, object] = {
        "client": "Quarterdeck",
        "payload": {
            "summary": shorten(message.title, LONGEST_SUMMARY),
            "source": message.cluster or "quarterdeck",
            "severity": SEVERITIES[message.severity],
            "timestamp": message.since.isoformat(),
            "component": message.subject,
            "class": message.labels.get("rule", message.kind),
            "custom_details": details,
        },
    }
    if message.link:
        alert |= {"client_url": message.link, "links": [{"href": message.link, "text": "Open in Quarterdeck"}]}
    return alert
