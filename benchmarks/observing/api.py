"""The simulated API server as a plain client has it: what the bench changes there, and what serving alone costs."""

import json
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import httpx

PAGE = 500
TIMEOUT_S = 60.0
MERGE = {"Content-Type": "application/merge-patch+json"}


class Api:
    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=TIMEOUT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    def pages(self, path: str) -> Iterator[bytes]:
        """A list as it is sent, page after page."""
        query: dict[str, str | int] = {"limit": PAGE}
        while True:
            body = self._client.get(path, params=query).raise_for_status().content
            yield body
            # It is in the metadata, before the items: this client reads no further.
            _, found, rest = body[:4096].partition(b'"continue":"')
            if not found:
                return
            query["continue"] = rest.split(b'"', 1)[0].decode()

    def label(self, node: str, value: str) -> float:
        """When the API server had said that it is done."""
        patch = {"metadata": {"labels": {"bench": value}}}
        self._client.patch(f"/api/v1/nodes/{node}", content=json.dumps(patch), headers=MERGE).raise_for_status()
        return time.perf_counter()

    def churn(self, per_s: float) -> None:
        self._client.post("/simulator/churn", json={"per_s": per_s}).raise_for_status()

    def newest_request(self) -> int:
        return max((asked["n"] for asked in self._requests(0)), default=0)

    def paths_listed(self, *, since: int) -> list[str]:
        """What was listed since, each path once: to be asked for again by somebody who does nothing with it."""
        asked = (each for each in self._requests(since) if each["verb"] == "list" and each["code"] == 200)
        return sorted({each["path"] for each in asked if "limit=" in each["query"]})

    def serving_s(self, paths: list[str]) -> float:
        """What the server takes for these lists, in the same pages."""
        began = time.perf_counter()
        for path in paths:
            for _ in self.pages(path):
                continue
        return time.perf_counter() - began

    def _requests(self, since: int) -> list[dict[str, Any]]:
        return list(self._client.get("/simulator/requests", params={"since": since}).raise_for_status().json())
