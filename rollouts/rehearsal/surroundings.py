"""Room for evicted pods and maintenance windows of the live cluster, as a rehearsal reads them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from fleet.models import Node, Pod
from rollouts.gates.base import NextWave, WindowEvidence
from rollouts.queries.headroom import ClusterRoom
from rollouts.queries.restraints import OpenHours, Windows


@dataclass(frozen=True)
class LiveRoom:
    """The room as it is now: in virtual time every evicted pod returns to its node."""

    room: ClusterRoom
    nodes: Mapping[str, Node]  # by name
    pods: Mapping[str, Sequence[Pod]]  # of tenants, by node

    def next_wave(self, names: Sequence[str], busy: Collection[str]) -> NextWave:
        pods = [pod for name in names for pod in self.pods.get(name, ()) if pod.deleted_at is None]
        return self.room.next_wave([self.nodes[name] for name in names], pods, busy=busy)


@dataclass(frozen=True)
class LiveHours:
    """The maintenance windows of now, at any virtual time."""

    windows: Windows
    pools: Mapping[str, frozenset[int]]  # of each node, by name

    def closed(self, names: Collection[str], now: datetime) -> Mapping[str, str]:
        windows = replace(self.windows, at=now)
        by_pools = {its: windows.closed(its) for its in {self.pools[name] for name in names}}
        return {name: why.sentence for name in names if (why := by_pools[self.pools[name]])}

    def evidence(self, names: Collection[str], *, lasting: timedelta, now: datetime) -> tuple[WindowEvidence, ...]:
        windows = replace(self.windows, at=now)
        by_pools = {its: windows.openings(its, lasting=lasting) for its in {self.pools[name] for name in names}}
        groups: dict[OpenHours | None, list[str]] = {}
        for name in names:
            groups.setdefault(by_pools[self.pools[name]], []).append(name)
        return tuple(WindowEvidence(tuple(nodes), *(its or ())) for its, nodes in groups.items())
