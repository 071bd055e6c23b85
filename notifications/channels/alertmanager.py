"""Alertmanager API v2 (github.com/prometheus/alertmanager, api/v2/openapi.yaml).

Labels are the identity of an alert, so everything that changes is an annotation. Alertmanager forgets its alerts in a
restart: an open one is sent again every few minutes, and ends by itself if Quarterdeck stops.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from notifications.channels.base import (
    JSON,
    ChannelRequest,
    ChannelSettings,
    DeliveryAct,
    HttpChannel,
    Notification,
    as_json,
)

REFRESH = timedelta(minutes=2)
MISSED = 3  # heartbeats, after which their alert ends
LASTS = timedelta(minutes=10)  # after the last refresh; longer than two of them may be late


class Alertmanager(HttpChannel):
    key = "alertmanager"
    title = "Alertmanager"
    asks = "bearer token, if it wants one"
    wants_address = "its address, as http://alertmanager.monitoring:9093"
    has_storms = False  # Alertmanager groups alerts itself
    heartbeat_min = 2
    heartbeat_hint = "an alert QuarterdeckHeartbeat that always fires, for a dead man's switch"

    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest:
        headers = {**JSON, "Authorization": f"Bearer {target.secret}"} if target.secret else JSON
        ends_at = now if act is DeliveryAct.RESOLVE else now + LASTS
        alert = {
            "labels": {
                "alertname": message.labels.get("rule", message.kind),
                "quarterdeck_key": message.key,
                "cluster": message.cluster,
                "subject": message.subject,
                **{name: value for name, value in message.labels.items() if name in ("node", "pool") and value},
            },
            "annotations": {
                "summary": message.title,
                "description": "\n".join(message.paragraphs),
                "severity": message.severity,
                "impact": message.impact,
            },
            "startsAt": min(message.since, now).isoformat(),
            "endsAt": ends_at.isoformat(),
            "generatorURL": message.link,
        }
        return ChannelRequest(f"{target.address.rstrip('/')}/api/v2/alerts", as_json([alert]), headers)

    def heartbeat(self, target: ChannelSettings, *, instance: str, every: timedelta, now: datetime) -> ChannelRequest:
        """Returns an alert that always fires. A receiver that expects it notices its absence."""
        headers = {**JSON, "Authorization": f"Bearer {target.secret}"} if target.secret else JSON
        alert = {
            "labels": {"alertname": "QuarterdeckHeartbeat", "quarterdeck_instance": instance, "severity": "none"},
            "annotations": {"summary": "Quarterdeck sends notifications. Alert when this alert is missing."},
            "startsAt": now.isoformat(),
            "endsAt": (now + MISSED * every).isoformat(),
        }
        return ChannelRequest(f"{target.address.rstrip('/')}/api/v2/alerts", as_json([alert]), headers)

    def joined(self, requests: Sequence[ChannelRequest]) -> ChannelRequest:
        """Returns one request with the alerts of all of them."""
        first = requests[0]
        alerts = [alert for each in requests for alert in json.loads(each.body)]
        return ChannelRequest(first.url, as_json(alerts), first.headers)

    def silenced_alerts(self, target: ChannelSettings, *, instance: str) -> tuple[str, Mapping[str, str]]:
        """Returns the address and headers of the question which of our alerts a silence suppresses."""
        ours = f'quarterdeck_key=~"quarterdeck/{instance}/.+"'
        query = {"active": "false", "inhibited": "false", "unprocessed": "false", "silenced": "true", "filter": ours}
        return f"{target.address.rstrip('/')}/api/v2/alerts?{urlencode(query)}", self._bearer(target)

    def silences(self, target: ChannelSettings) -> tuple[str, Mapping[str, str]]:
        return f"{target.address.rstrip('/')}/api/v2/silences", self._bearer(target)

    def silence(
        self, target: ChannelSettings, key: str, *, ref: str, by: str, comment: str, until: datetime, now: datetime
    ) -> ChannelRequest:
        """Returns the request that silences the alert of a key. `ref` is the silence that it replaces, if any."""
        body = {
            "matchers": [self.matcher(key)],
            "startsAt": now.isoformat(),
            "endsAt": until.isoformat(),
            "createdBy": by,
            "comment": comment,
        }
        address = f"{target.address.rstrip('/')}/api/v2/silences"
        return ChannelRequest(address, as_json(body | ({"id": ref} if ref else {})), {**JSON, **self._bearer(target)})

    def one_silence(self, target: ChannelSettings, ref: str) -> tuple[str, Mapping[str, str]]:
        return f"{target.address.rstrip('/')}/api/v2/silence/{quote(ref, safe='')}", self._bearer(target)

    def matcher(self, key: str) -> Mapping[str, Any]:
        """Returns the matcher of the one alert that has the key."""
        return {"name": "quarterdeck_key", "value": key, "isRegex": False, "isEqual": True}

    def ref_in(self, body: str) -> str:
        """Returns the id of the silence that was created; blank if the answer names none."""
        with suppress(ValueError):
            answer = json.loads(body)
            return str(answer.get("silenceID", "")) if isinstance(answer, dict) else ""
        return ""

    def _bearer(self, target: ChannelSettings) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {target.secret}"} if target.secret else {}
