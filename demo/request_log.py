"""What was asked of the simulator's API server: releases are judged by this, not by what Quarterdeck says of itself."""

from datetime import datetime
from typing import Any

import httpx

from demo.cluster import SKIP_LABEL

NODES = "/api/v1/nodes/"
Asked = dict[str, Any]


class RequestLog:
    """Everything since it was opened."""

    def __init__(self, simulator_url: str) -> None:
        self._url = simulator_url
        self._opened_at = max((asked["n"] for asked in self._asked(0)), default=0)

    def releases(self) -> list[Asked]:
        """Return the requests that took the skip label from a node: each let one node change."""
        return [asked for asked in self._asked(self._opened_at) if is_release(asked)]

    def _asked(self, since: int) -> list[Asked]:
        answer = httpx.get(f"{self._url}/simulator/requests", params={"since": since}, timeout=15)
        return list(answer.raise_for_status().json())


def is_release(asked: Asked) -> bool:
    """Say whether the request took the label away, by whichever kind of patch."""
    if asked["verb"] != "patch" or not asked["path"].startswith(NODES) or asked["code"] >= 300:
        return False
    body = asked["body"]
    if isinstance(body, list):
        label = SKIP_LABEL.replace("/", "~1")
        return any(step["op"] == "remove" and step["path"].endswith(label) for step in body)
    labels = (body.get("metadata") or {}).get("labels") or {}
    return SKIP_LABEL in labels and labels[SKIP_LABEL] is None


def node_of(asked: Asked) -> str:
    """Return the node the request was about."""
    return str(asked["path"].removeprefix(NODES))


def at(asked: Asked) -> datetime:
    """Return when the API server was asked."""
    return datetime.fromisoformat(asked["at"])
