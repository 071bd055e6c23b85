"""A Slack bot (docs.slack.dev/reference/methods/chat.postMessage, chat.update). It edits its message in place.

An edit notifies nobody, so a finding that became more severe is another message. Slack answers 200 to refusals, too,
with `"ok": false` and the name of the error.
"""

from collections.abc import Mapping
from datetime import datetime

from notifications.channels.base import (
    JSON,
    Acceptance,
    ChannelRequest,
    ChannelSettings,
    DeliveryAct,
    HttpChannel,
    Notification,
    SendOutcome,
    as_json,
    read_object,
)
from notifications.channels.slack import content_of

NOTIFYING = frozenset({"finding.worse"})
TRANSIENT = frozenset({"fatal_error", "internal_error", "ratelimited", "request_timeout", "service_unavailable"})


class SlackBot(HttpChannel):
    key = "slack_bot"
    title = "Slack bot"
    asks = "bot token, xoxb-…, with the scope chat:write"
    wants_address = "https://slack.com/api"
    default_address = "https://slack.com/api"
    wants_recipients = "id of the Slack channel, as C0123456789; invite the bot there"
    edits = True

    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest:
        channel, _, ts = target.ref.partition("/")
        is_edit = bool(ts) and act in (DeliveryAct.UPDATE, DeliveryAct.RESOLVE) and message.kind not in NOTIFYING
        body = {"channel": channel if is_edit else next(iter(target.recipients), ""), **content_of(message, act)}
        body |= {"ts": ts} if is_edit else {}
        url = f"{target.address.rstrip('/')}/{'chat.update' if is_edit else 'chat.postMessage'}"
        return ChannelRequest(url, as_json(body), {**JSON, "Authorization": f"Bearer {target.secret}"})

    def outcome(self, status: int, headers: Mapping[str, str], body: str) -> SendOutcome:
        answer = read_object(body)
        if status != 200 or answer.get("ok") is True:
            return super().outcome(status, headers, body)
        error = str(answer.get("error", "The answer has no ok."))[:300]
        return SendOutcome(Acceptance.RETRY if error in TRANSIENT else Acceptance.REFUSED, status, error)

    def ref_in(self, body: str) -> str:
        answer = read_object(body)
        return f"{answer['channel']}/{answer['ts']}"[:255] if "channel" in answer and "ts" in answer else ""
