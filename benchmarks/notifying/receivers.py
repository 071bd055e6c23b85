"""Receivers that answer late, refuse, accept without saying so, or never answer; and what each one got."""

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LATE_S, NEVER_S = 2.0, 25.0  # a client gives up after 20 s
# What a failing receiver does, by its share: `is_kept`, whether it has the message all the same.
FAULTS: tuple[tuple[float, str], ...] = (
    (0.05, "refuses with 429"),
    (0.05, "refuses with 500"),
    (0.05, "keeps it and answers 500"),
    (0.05, "keeps it and hangs up"),
    (0.03, "keeps it and never answers"),
    (0.14, "keeps it and answers late"),
)


@dataclass
class Pager:
    """Incidents by key, as PagerDuty has them: a trigger of an open incident pages nobody."""

    pages: Counter[str] = field(default_factory=Counter)
    resolved: Counter[str] = field(default_factory=Counter)
    open: set[str] = field(default_factory=set)
    unknown: Counter[str] = field(default_factory=Counter)  # resolved before they were triggered

    def keep(self, body: dict[str, Any]) -> None:
        key, action = body["dedup_key"], body["event_action"]
        if action == "trigger" and key not in self.open:
            self.pages[key] += 1
            self.open.add(key)
        elif action == "resolve":
            if key not in self.pages:
                self.unknown[key] += 1
            self.resolved[key] += key in self.open
            self.open.discard(key)


@dataclass
class Machine:
    """Events by name, as a receiver of Standard Webhooks has them: it knows a repetition by its `webhook-id`."""

    names: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    came_at: dict[tuple[str, str], float] = field(default_factory=dict)

    def keep(self, body: dict[str, Any], name: str) -> None:
        event = body["data"]["key"], body["type"]
        self.names[event].add(name)
        self.came_at.setdefault(event, time.time())


@contextmanager
def served(keep: Callable[[dict[str, Any], str], None], *, seed: int | None) -> Iterator[tuple[str, Counter[str]]]:
    """Serves a receiver; yields its address and how often it did what. `seed` None: it never fails."""
    chance, lock = random.Random(seed), threading.Lock()
    deeds: Counter[str] = Counter()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                deed = _deed(chance.random()) if seed is not None else ""
                deeds[deed] += 1
                if not deed.startswith("refuses"):
                    keep(body, self.headers.get("webhook-id", ""))
            time.sleep(LATE_S if deed.endswith("late") else NEVER_S if "never" in deed else 0)
            if deed.endswith("up") or "never" in deed:
                self.connection.close()
                return
            self.send_response(429 if "429" in deed else 500 if "500" in deed else 202)
            if "429" in deed:
                self.send_header("retry-after", "2")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", deeds
    finally:
        server.shutdown()


def _deed(drawn: float) -> str:
    """Returns what it does; blank: it accepts at once."""
    for share, deed in FAULTS:
        if drawn < share:
            return deed
        drawn -= share
    return ""
