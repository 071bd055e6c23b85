"""A Slack incoming webhook (docs.slack.dev/messaging/sending-messages-using-incoming-webhooks).

It has no identity and no edit: a change is another message, and a change for the better is none.
"""

from datetime import datetime
from typing import Any

from notifications.channels.base import (
    JSON,
    ChannelRequest,
    ChannelSettings,
    DeliveryAct,
    HttpChannel,
    Notification,
    as_json,
    shorten,
)

MARKS = {"critical": ":red_circle:", "warning": ":large_orange_circle:", "note": ":large_blue_circle:"}
LONGEST_SECTION, LONGEST_HEADER = 3000, 150  # docs.slack.dev/reference/block-kit/blocks


class Slack(HttpChannel):
    key = "slack"
    title = "Slack incoming webhook"
    repeats_changes = True
    asks = "address of the incoming webhook, https://hooks.slack.com/services/…"

    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest | None:
        if message.kind == "finding.better":
            return None
        return ChannelRequest(target.secret, as_json(content_of(message, act)), JSON)


def content_of(message: Notification, act: DeliveryAct) -> dict[str, Any]:
    """Returns the text and the blocks of a message."""
    mark = ":white_check_mark:" if act is DeliveryAct.RESOLVE else MARKS[message.severity]
    title = f"Resolved: {message.title}" if act is DeliveryAct.RESOLVE else message.title
    text = "\n".join(escaped(part) for part in message.paragraphs if part != message.link)
    handles = [f"<@{each['slack']}>" for each in message.mentions if each["slack"]]
    if handles and act is not DeliveryAct.RESOLVE:
        text = f"{' '.join(handles)}\n{text}"
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": shorten(f"{mark} {title}", LONGEST_HEADER)}},
        {"type": "section", "text": {"type": "mrkdwn", "text": shorten(text, LONGEST_SECTION)}},
    ]
    if message.link:
        link = {"type": "mrkdwn", "text": f"<{message.link}|Open in Quarterdeck>"}
        blocks.append({"type": "section", "text": link})
    return {"text": escaped(title), "blocks": blocks}


def escaped(text: str) -> str:
    """Escapes the three characters with a meaning (docs.slack.dev/messaging/formatting-message-text)."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
