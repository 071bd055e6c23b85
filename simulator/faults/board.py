"""Which faults are on. Both halves of the simulator ask it; the wire sets it while everything runs."""

import threading
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar


class Fault(Protocol):
    key: ClassVar[str]


Kind = TypeVar("Kind")


class UnknownFault(ValueError):
    """No fault of that name, or not with those settings."""


class Board:
    def __init__(self, *faults: Fault) -> None:
        self._lock = threading.Lock()
        self._on: tuple[Fault, ...] = faults
        self._listeners: list[Callable[[], None]] = []

    def active(self, kind: type[Kind]) -> list[Kind]:
        return [fault for fault in self._on if isinstance(fault, kind)]

    def listing(self) -> tuple[Fault, ...]:
        return self._on

    def put(self, fault: Fault) -> None:
        with self._lock:
            self._on = (*(was for was in self._on if was != fault), fault)
        self._tell()

    def clear(self, key: str = "") -> None:
        """Without a key: all of them."""
        with self._lock:
            self._on = tuple(fault for fault in self._on if key and fault.key != key)
        self._tell()

    def end(self, key: str, settings: dict[str, Any]) -> int:
        """Those of this name with these settings, written as they are on the command line. How many there were."""
        with self._lock:
            ended = [fault for fault in self._on if fault.key == key and _has(fault, settings)]
            self._on = tuple(fault for fault in self._on if fault not in ended)
        if ended:
            self._tell()
        return len(ended)

    def reboot(self, node: str) -> None:
        """Ends the faults of a node that its reboot mends."""
        with self._lock:
            ended = [each for each in self._on if getattr(each, "node", "") == node and _ends_with_reboot(each)]
            self._on = tuple(fault for fault in self._on if fault not in ended)
        if ended:
            self._tell()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Listeners are called in the thread that made the change."""
        self._listeners.append(listener)

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()


def _ends_with_reboot(fault: Fault) -> bool:
    return bool(getattr(fault, "ends_with_reboot", False))


def _has(fault: Fault, settings: dict[str, Any]) -> bool:
    return all(str(getattr(fault, name, None)) == str(value) for name, value in settings.items())


def build(table: dict[str, type[Fault]], key: str, settings: dict[str, Any]) -> Fault:
    """:raises UnknownFault:"""
    if key not in table:
        raise UnknownFault(f"no fault is called {key!r}; there are {', '.join(sorted(table))}")
    try:
        return table[key](**settings)
    except (TypeError, ValueError) as error:
        raise UnknownFault(f"{key}: {error}") from error


def parse(table: dict[str, type[Fault]], text: str) -> Fault:
    """`bad_driver:version=580.126.20,how=crash` as on the command line. :raises UnknownFault:"""
    key, _, rest = text.partition(":")
    pairs = [pair.partition("=") for pair in rest.split(",") if pair]
    return build(table, key, {name: value for name, _, value in pairs})
