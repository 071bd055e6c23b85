"""Budgets of failure domains: how many of their nodes may be unavailable at a time. Pure.

A failure domain is a set of nodes whose joint outage hurts: a pool, a zone, a rack, an NVLink domain, or the nodes on
which one service is Ready.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from wording.lists import names
from wording.numbers import count


class DomainKind(StrEnum):
    POOL = "pool"  # bound by its own `max_unavailable`
    ZONE = "zone"
    RACK = "rack"
    NVLINK = "nvlink-domain"
    SERVICE = "service"  # bound by the rule that its last Ready replica is not taken


class Domain(NamedTuple):
    kind: DomainKind
    key: str  # distinguishes domains of one kind


@dataclass(frozen=True)
class Allowance:
    words: str  # name of the domain in sentences: "pool north/h200"
    most: int  # nodes that may be out at a time
    out: Mapping[str, str] = field(default_factory=dict)  # node's name → it, and why: "gpu-7 (plan-3)"
    is_last_replica: bool = False  # of a service: counts the nodes on which it is Ready
    way_out: str = ""  # of a service for which waiting alone may never do

    def says(self, name: str) -> str:
        if self.is_last_replica:
            alone = f"{self.words} is Ready on {name} alone. The last Ready replica is not evicted."
            return f"{alone} {self.way_out}" if self.way_out else alone
        used = f"{self.words[:1].upper()}{self.words[1:]} may have {count(self.most, 'node')} unavailable"
        return f"{used} and has {len(self.out)}: {names(sorted(self.out.values()))}."


@dataclass(frozen=True)
class Budgets:
    """The budgets of one cluster at one moment, as far as they bind the given nodes."""

    of: Mapping[Domain, Allowance] = field(default_factory=dict)
    domains: Mapping[str, tuple[Domain, ...]] = field(default_factory=dict)  # node's name → the domains that bind it

    def going(self, ready: Iterable[str], room: int) -> tuple[str, ...]:
        taken: Counter[Domain] = Counter()
        found: list[str] = []
        for name in ready:
            if len(found) >= room:
                break
            needs = self._needs(name)
            if self._full(needs, taken) is None:
                found.append(name)
                taken.update(needs)
        return tuple(found)

    def in_waves(self, order: Iterable[str], room: int) -> Iterator[tuple[str, ...]]:
        """Yields waves for all nodes. Nodes that can never fit their domain's budget are released one at a time, last.

        Nodes of the same domains are checked once per wave.
        """
        alike: dict[tuple[Domain, ...], deque[tuple[int, str]]] = defaultdict(deque)
        for place, name in enumerate(order):
            alike[self._needs(name)].append((place, name))
        while alike:
            yield self._wave(alike, room) or (_first(alike),)

    def _wave(self, alike: dict[tuple[Domain, ...], deque[tuple[int, str]]], room: int) -> tuple[str, ...]:
        taken: Counter[Domain] = Counter()
        found: list[str] = []
        heads = [(its[0], needs) for needs, its in alike.items()]
        heapify(heads)
        while heads and len(found) < room:
            _, needs = heappop(heads)
            if self._full(needs, taken) is None:
                found.append(_next(alike, needs))
                taken.update(needs)
                if needs in alike:
                    heappush(heads, (alike[needs][0], needs))
        return tuple(found)

    def largest(self, order: Sequence[str], room: int) -> int:
        """Returns the size of the largest wave; the first wave usually reaches it."""
        bound = min(room, len(order), self._bound(order))
        found = 0
        for wave in self.in_waves(order, room):
            found = max(found, len(wave))
            if found >= bound:
                break
        return found

    def _bound(self, names: Sequence[str]) -> int:
        """Returns an upper bound of a wave: the places of each domain, plus the nodes that need none."""
        needed: dict[DomainKind, Counter[Domain]] = defaultdict(Counter)
        free: Counter[DomainKind] = Counter(dict.fromkeys({domain.kind for domain in self.of}, len(names)))
        for name in names:
            needs = self._needs(name)
            for domain in needs:
                needed[domain.kind][domain] += 1
            for kind in {domain.kind for domain in needs}:
                free[kind] -= 1
        places = {
            kind: sum(min(number, max(0, self._left[domain])) for domain, number in its.items())
            for kind, its in needed.items()
        }
        return min((free[kind] + places[kind] for kind in places), default=len(names))

    def waiting(self, ready: Iterable[str]) -> dict[str, str]:
        nobody: Counter[Domain] = Counter()
        full = {name: self._full(self._needs(name), nobody) for name in ready}
        return {name: self.of[domain].says(name) for name, domain in full.items() if domain is not None}

    def empty(self) -> "Budgets":
        return Budgets({domain: replace(budget, out={}) for domain, budget in self.of.items()}, self.domains)

    def why_not(self, wave: Sequence[str]) -> str:
        going = set(self.going(wave, len(wave)))
        late = next((name for name in wave if name not in going), None)
        if late is None:
            return ""
        return self.waiting([late]).get(late) or f"{late} and other nodes of the wave are in the same failure domain."

    def _needs(self, name: str) -> tuple[Domain, ...]:
        """Returns the domains in which the node takes a place. An unavailable node has its places already."""
        return tuple(domain for domain in self.domains.get(name, ()) if name not in self.of[domain].out)

    def _full(self, needs: Iterable[Domain], taken: Mapping[Domain, int]) -> Domain | None:
        return next((one for one in needs if taken[one] >= self._left[one]), None)

    @cached_property
    def _left(self) -> Mapping[Domain, int]:
        return {domain: budget.most - len(budget.out) for domain, budget in self.of.items()}


def _first(alike: dict[tuple[Domain, ...], deque[tuple[int, str]]]) -> str:
    return _next(alike, min(alike, key=lambda needs: alike[needs][0]))


def _next(alike: dict[tuple[Domain, ...], deque[tuple[int, str]]], needs: tuple[Domain, ...]) -> str:
    _, name = alike[needs].popleft()
    if not alike[needs]:
        del alike[needs]
    return name


UNBOUND = Budgets()
