"""A Microsoft Teams workflow, with its trigger "When a Teams webhook request is received".

Connectors are gone. A workflow takes an Adaptive Card and answers 202 before it posts. It has no edit: a change is
another card, and a change for the better is none. learn.microsoft.com/connectors/teams#microsoft-teams-webhook
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

LONGEST_TEXT = 10_000  # characters; a message may have 28 KB
COLOURS = {"critical": "Attention", "warning": "Warning", "note": "Accent"}


class Teams(HttpChannel):
    key = "teams"
    title = "Microsoft Teams workflow"
    repeats_changes = True
    asks = "address of the workflow, with its signature"

    def request(
        self, target: ChannelSettings, message: Notification, act: DeliveryAct, *, delivery: str, now: datetime
    ) -> ChannelRequest | None:
        if message.kind == "finding.better":
            return None
        is_over = act is DeliveryAct.RESOLVE
        title = f"Resolved: {message.title}" if is_over else message.title
        colour = "Good" if is_over else COLOURS[message.severity]
        texts = [part for part in message.paragraphs if part != message.link]
        people = [each for each in message.mentions if each["teams"] and not is_over]
        texts = [*(f"<at>{each['name']}</at>" for each in people), *texts]
        card: dict[str, Any] = {
            "type": "AdaptiveCard",
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "version": "1.4",
            "body": [
                {"type": "TextBlock", "text": title, "weight": "Bolder", "wrap": True, "color": colour},
                *({"type": "TextBlock", "text": shorten(text, LONGEST_TEXT), "wrap": True} for text in texts),
            ],
            "actions": [{"type": "Action.OpenUrl", "title": "Open in Quarterdeck", "url": message.link}]
            if message.link
            else [],
        }
        if people:  # learn.microsoft.com/microsoftteams/platform/task-modules-and-cards/cards/cards-format
            entities = [
                {
                    "type": "mention",
                    "text": f"<at>{each['name']}</at>",
                    "mentioned": {"id": each["teams"], "name": each["name"]},
                }
                for each in people
            ]
            card["msteams"] = {"entities": entities}
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
        return ChannelRequest(target.secret, as_json({"type": "message", "attachments": [attachment]}), JSON)
