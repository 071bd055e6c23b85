"""What outside clients asked, in order: tests judge acts by this, never by what the asker says of itself."""

import json
import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

REMEMBERED = 200_000


@dataclass(frozen=True, slots=True)
class Entry:
    n: int
    at: str
    verb: str
    method: str
    path: str
    query: str
    user_agent: str
    user: str
    code: int
    took_ms: float
    body: Any = None
    """Of writes only."""

    def as_json(self) -> dict[str, Any]:
        """Its body as it is, and no copy: those of a log are many."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return told if self.body is not None else {key: value for key, value in told.items() if key != "body"}


class RequestLog:
    def __init__(self, path: Path | None = None) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Entry] = deque(maxlen=REMEMBERED)
        self._count = 0
        self._file: IO[str] | None = path.open("a", buffering=1) if path else None

    def write(self, **facts: Any) -> None:
        with self._lock:
            self._count += 1
            entry = Entry(n=self._count, **facts)
            self._entries.append(entry)
            if self._file:
                self._file.write(json.dumps(entry.as_json()) + "\n")

    def since(self, n: int) -> list[dict[str, Any]]:
        """Entries numbered above `n`."""
        with self._lock:
            newer = min(self._count - n, len(self._entries))
            start = len(self._entries) - max(newer, 0)
            return [self._entries[index].as_json() for index in range(start, len(self._entries))]

    def close(self) -> None:
        if self._file:
            self._file.close()
