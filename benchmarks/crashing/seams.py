"""The seams of a process: before and after each request, each commit, and each row written by itself.

What happens there is planned for whoever is running: to die, to sleep, or to be overtaken by somebody else.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import Any

from django.db import connection
from django.db.transaction import Atomic

from simulator.fleets.plan import DRIVER_NEXT

HOLD = b"gpu-driver-upgrade.skip"
NODES, JOBS, HOSTS = "/api/v1/nodes/", "/jobs", "/baremetalhosts/"
WRITES = ("INSERT", "UPDATE", "DELETE")
# Who has just proven that it is his turn writes: what comes in between is seen by nobody, and by no API server.
LEASED = ("rollouts_plan", "operations_operation", "maintenance_repair")
PROVES_TURN = tuple(f'{WRITES[1]} "{table}" SET "lease_until"' for table in LEASED)


class KilledError(BaseException):
    """The process ends here. Nothing in the product catches it: what was not committed never was."""


class Fault(StrEnum):
    """What becomes of one request."""

    CONFLICT = "409"
    THROTTLED = "429"
    FAILING = "500"
    RESET_BEFORE = "reset before"  # the API server never heard of it
    RESET_AFTER = "reset after"  # it took effect, and nobody was told
    TIMEOUT_AFTER = "timeout after"
    LATE = "late"  # nobody was told, and it takes effect later


class Kind(StrEnum):
    """What a write is of."""

    RELEASE = "release"  # our label is taken off a node
    HOLD = "hold"
    STATE = "state"  # the operator's mark of a node
    VERSION = "version"  # the new one
    ROLLBACK = "rollback"  # the old one
    LEASE = "lease"
    JOB = "job"
    JOB_GONE = "job gone"
    EVICTION = "eviction"
    REPAIR = "repair"  # an actor is asked for one


@dataclass(frozen=True)
class Write:
    kind: Kind
    seam: int  # just before it
    request: int
    node: str = ""  # its name; blank: it is of something else


@dataclass
class Turn:
    """One process at one piece of work, and what is planned for it."""

    who: str
    number: int = 0  # of all turns, in the order in which they began; 0: nobody's
    of: str = "turn"  # at a plan; else what it is at, which has a lease of its own
    dies_at: int = 0  # seam; 0: nowhere
    acts: Mapping[int, Callable[[], None]] = field(default_factory=dict)  # seam at which it can be overtaken → by what
    faults: Mapping[int, Fault] = field(default_factory=dict)  # request → fault
    seams: int = 0
    gaps: list[int] = field(default_factory=list)  # seams between two things: where it can be overtaken
    requests: int = 0
    writes: list[Write] = field(default_factory=list)
    is_cut: bool = False


class Seams:
    """Counts them for the turn that is on. A turn begun at a seam of another is another process."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    @property
    def turn(self) -> Turn | None:
        return self._turns[-1] if self._turns else None

    @contextmanager
    def turn_of(self, turn: Turn) -> Iterator[Turn]:
        self._turns.append(turn)
        try:
            yield turn
        finally:
            self._turns.pop()

    def pass_one(self, *, is_over: bool) -> None:
        """`is_over`: between two things. Before one, a process may die, and nobody overtakes it unseen.

        :raises KilledError: where the turn's process dies
        """
        if not self._turns:
            return
        turn = self._turns[-1]
        turn.seams += 1
        if is_over:
            turn.gaps.append(turn.seams)
        if turn.dies_at == turn.seams:
            turn.is_cut = True
            raise KilledError
        if is_over and (act := turn.acts.get(turn.seams)):
            turn.is_cut = True
            with self.turn_of(Turn("in between")):
                act()

    def next_fault(self, method: str, path: str, body: bytes) -> Fault | None:
        turn = self.turn
        if turn is None:
            return None
        turn.requests += 1
        if kind := _kind_of(method, path, body):
            node = path.removeprefix(NODES) if path.startswith(NODES) else ""
            turn.writes.append(Write(kind, turn.seams, turn.requests, node))
        return turn.faults.get(turn.requests)

    # In the database

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Pass a seam before and after each commit. Not in a transaction: what dies there has not been."""
        ended = Atomic.__exit__

        def leave(
            atomic: Atomic, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
        ) -> Any:
            is_outermost = connection.in_atomic_block and not connection.savepoint_ids
            if kind is None and is_outermost and self._turns:
                try:
                    self.pass_one(is_over=False)
                except KilledError as killed:
                    ended(atomic, KilledError, killed, killed.__traceback__)
                    raise
            answer = ended(atomic, kind, error, at)
            if kind is None and is_outermost:
                self.pass_one(is_over=True)
            return answer

        Atomic.__exit__ = leave  # type: ignore[method-assign]
        try:
            with connection.execute_wrapper(self._around):
                yield
        finally:
            Atomic.__exit__ = ended  # type: ignore[method-assign]

    def _around(self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001
        if connection.in_atomic_block or not self._turns or not sql.startswith(WRITES):
            return execute(sql, params, many, context)
        self.pass_one(is_over=False)
        answer = execute(sql, params, many, context)
        if not _is_open(context) and not sql.startswith(PROVES_TURN):
            self.pass_one(is_over=True)
        return answer


def once_decided(gaps: Sequence[int], writes: Sequence[Write], release: int) -> list[int]:
    """Of a turn's gaps, those before the seam of a release and after its decision.

    What it asks once more, and then writes down: the first half of all since it asked for the Lease.
    """
    leases = (write.seam for write in writes if write.kind is Kind.LEASE)
    decided = max((seam for seam in leases if seam < release), default=0)
    late = [gap for gap in gaps if decided <= gap < release]
    return late[: (len(late) + 1) // 2]


def _kind_of(method: str, path: str, body: bytes) -> Kind | None:
    if JOBS in path:
        return {"POST": Kind.JOB, "DELETE": Kind.JOB_GONE}.get(method)
    if path.endswith("/eviction"):
        return Kind.EVICTION
    if path.startswith("https:") or path.endswith("/rebootnodes") or (HOSTS in path and method == "PATCH"):
        return Kind.REPAIR
    if method in {"POST", "PUT"}:
        return Kind.LEASE
    if method != "PATCH":
        return None
    if not path.startswith(NODES):
        return Kind.VERSION if json.loads(body)[-1]["value"] == DRIVER_NEXT else Kind.ROLLBACK
    if HOLD not in body:
        return Kind.STATE
    return Kind.RELEASE if b'"remove"' in body else Kind.HOLD


def _is_open(context: Any) -> bool:
    """Whether the statement gives rows back that nobody has read yet: what comes in between would close it."""
    cursor = context["cursor"].cursor
    return cursor.description is not None
