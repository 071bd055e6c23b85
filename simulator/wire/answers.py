"""What goes back: one body, or pieces as they come."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from simulator.events import ENCODER
from simulator.kinds import Kind
from simulator.refusals import Refused

JSON = "application/json"


@dataclass(slots=True)
class Answer:
    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    pieces: AsyncIterator[bytes] | None = None
    waits: bool = False  # with its status, until the first piece is there

    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        plain = {"content-type": self.content_type, "cache-control": "no-cache, private", **self.headers}
        if self.pieces is None:
            plain["content-length"] = str(len(self.body))
        return [(name.encode(), value.encode()) for name, value in plain.items()]


def of_json(body: Any, status: int = 200, *, content_type: str = JSON) -> Answer:
    return Answer(status, ENCODER.encode(body), content_type)


def of_text(text: str) -> Answer:
    return Answer(200, text.encode(), "text/plain; charset=utf-8")


def of_refusal(refusal: Refused) -> Answer:
    answer = of_json(refusal.body(), refusal.status)
    if refusal.retry_after_s is not None:
        answer.headers["retry-after"] = str(refusal.retry_after_s)
    return answer


def success(status: int = 200, *, kind: Kind | None = None, uid: str = "", name: str = "") -> Answer:
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if kind is not None:
        details = {"name": name, "group": kind.group, "kind": kind.plural, "uid": uid}
        body["details"] = {key: value for key, value in details.items() if value}
    if status != 200:
        body["code"] = status
    return of_json(body, status)
