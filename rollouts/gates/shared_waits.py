"""Groups gates that wait for the same reason, so that a page, REST and a banner give it once. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from wording.lists import names
from wording.reports import sentence_of
from wording.sentences import capitalized

GateT = TypeVar("GateT")


class WaitReport(Protocol):
    """The result of a gate that waits, or a row of it."""

    @property
    def title(self) -> str: ...
    @property
    def summary(self) -> str: ...
    @property
    def nodes(self) -> Sequence[str]: ...
    @property
    def steps(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class SharedWait(Generic[GateT]):
    """A reason for which one or more gates wait."""

    title: str
    summary: str  # blank: its gates have different ones
    nodes: tuple[str, ...]
    steps: tuple[str, ...]  # of all of its gates, each once
    lines: tuple[GateT, ...]  # the caller's data of each gate

    @property
    def sentence(self) -> str:
        return sentence_of(self.title, self.summary)


def shared_waits(waits: Iterable[tuple[GateT, WaitReport]]) -> list[SharedWait[GateT]]:
    """Returns each reason once, in the order of its first gate.

    A reason is the title and the nodes of a result, without the name of a rule before a colon.
    """
    groups: dict[tuple[str, tuple[str, ...]], list[tuple[GateT, WaitReport]]] = {}
    for line, wait in waits:
        groups.setdefault((_reason(wait.title), tuple(wait.nodes)), []).append((line, wait))
    return [
        SharedWait(
            title=its[0][1].title if len(its) == 1 else reason,
            summary=its[0][1].summary if len({wait.summary for _, wait in its}) == 1 else "",
            nodes=nodes,
            steps=tuple(dict.fromkeys(step for _, wait in its for step in wait.steps)),
            lines=tuple(line for line, _ in its),
        )
        for (reason, nodes), its in groups.items()
    ]


def gates_sentence(titles: Sequence[str]) -> str:
    """Returns "3 gates wait for it: Xids, ECC errors and NVLink."; empty for a single gate."""
    return "" if len(titles) < 2 else f"{len(titles)} gates wait for it: {names(titles, most=9)}."


def _reason(title: str) -> str:
    return capitalized(title.partition(": ")[2]) or title
