"""One person's way in from outside: signs in at the page, speaks REST, listens on the WebSocket."""

import json
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self, TypeVar

import httpx
from websockets import Origin
from websockets.sync.client import ClientConnection, connect

TIMEOUT_S = 15.0
# A demo speaks plain http: who signs for whom is asked of nobody, and reading that takes 17 ms of CPU a visitor.
TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 0.4
T = TypeVar("T")


class RefusedError(Exception):
    """The server said no, in a sentence."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.problem = problem_of(response)
        asked = f"{response.request.method} {response.request.url.path}"
        super().__init__(f"{asked} → {self.status}: {self.problem.get('detail') or response.text[:500]}")


class TooSlowError(Exception):
    """What was waited for did not come to be."""


class Visitor:
    """Holds one session. Use it in one thread."""

    def __init__(self, url: str, name: str) -> None:
        self.url = url
        self.name = name
        self.password = ""
        self.http = httpx.Client(base_url=url, timeout=TIMEOUT_S, follow_redirects=True, verify=TRUST)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def sign_in(self, password: str) -> Self:
        """Open a session: its cookies serve REST, the pages and the WebSocket."""
        self.password = password
        self.post("/api/v1/session", {"username": self.name, "password": password})
        return self

    def get(self, path: str, **asked: str | int) -> Any:
        """Return what the path answers, decoded."""
        # None: with an empty mapping httpx takes the query away that the path has.
        return self._decoded(self.http.get(path, params=asked or None))

    def post(self, path: str, body: Any = None) -> Any:
        """Return what the path answers, decoded; None for a 204."""
        return self._decoded(self._send("POST", path, {} if body is None else body))

    def patch(self, path: str, body: Any) -> Any:
        """Return what the path answers, decoded."""
        return self._decoded(self._send("PATCH", path, body))

    def _send(self, method: str, path: str, body: Any) -> httpx.Response:
        """Return the answer to a write. An approval needs a recent sign-in, and a long run has none."""
        headers = {"X-CSRFToken": self._csrf(), "Referer": self.url}
        answer = self.http.request(method, path, json=body, headers=headers)
        if not problem_of(answer).get("type", "").endswith("confirmation-required"):
            return answer
        self.sign_in(self.password)
        return self.http.request(method, path, json=body, headers=headers | {"X-CSRFToken": self._csrf()})

    def all(self, path: str, **asked: str | int) -> list[Any]:
        """Return every row of a list that comes in pages."""
        rows: list[Any] = []
        page = self.get(path, **asked)
        while True:
            rows.extend(page["results"])
            if not page["next"]:
                return rows
            page = self.get(page["next"])

    @contextmanager
    def listening(self, path: str) -> Iterator[ClientConnection]:
        """Yield an open WebSocket of this session."""
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.http.cookies.jar)
        address = self.url.replace("http", "ws", 1) + path
        with connect(
            address, additional_headers={"Cookie": cookies}, origin=Origin(self.url), open_timeout=TIMEOUT_S, proxy=None
        ) as socket:
            yield socket

    def _csrf(self) -> str:
        return self.http.cookies.get("csrftoken") or ""

    def _decoded(self, response: httpx.Response) -> Any:
        if response.is_error:
            raise RefusedError(response)
        return response.json() if response.content else None


def problem_of(response: httpx.Response) -> dict[str, Any]:
    """Return the problem+json of a refusal; empty where it is something else."""
    try:
        said = response.json()
    except json.JSONDecodeError:
        return {}
    return said if isinstance(said, dict) else {}


def wait_until(
    look: Callable[[], T],
    *,
    what: str | Callable[[], str],
    timeout_s: float,
    every_s: float | None = None,
    longest_pause_s: float = LONGEST_PAUSE_S,
) -> T:
    """Return the first true answer of a look; raise with what was waited for, worked out at the end where it can be.

    Who does not say how often looks less and less often: a look costs the web process what others wait for.
    """
    until = time.monotonic() + timeout_s
    pause_s = every_s or FIRST_PAUSE_S
    while True:
        if seen := look():
            return seen
        if time.monotonic() > until:
            raise TooSlowError(f"Waited {timeout_s:.0f} s for {what if isinstance(what, str) else what()}.")
        time.sleep(pause_s)
        pause_s = every_s or min(longest_pause_s, pause_s * 1.2)
