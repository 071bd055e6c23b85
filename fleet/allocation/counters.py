"""Counters over nodes, updated in the transaction of every node write.

Every write of a node, or of its pools, runs inside `kept(cluster_id, nodes)`. It counts those nodes before and
after, adds the difference to the counters, and redraws their map chunks. `recount` does this for a whole cluster.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction

from fleet.allocation.sums import CountedSums, add, computed_counters, stored_counters
from fleet.map_cells import chunks
from fleet.models import Observer


class Kept:
    """The nodes of one cluster that one transaction writes."""

    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._nodes: set[int] = set()
        self._before: CountedSums = {}

    def touch(self, nodes: Iterable[int]) -> None:
        """Counts these nodes before they are written."""
        if new := set(nodes) - self._nodes:
            self.lock()
            for table, rows in computed_counters(self.cluster_id, new).items():
                before = self._before.setdefault(table, {})
                for key, numbers in rows.items():
                    before.setdefault(key, Counter()).update(numbers)
            self._nodes |= new

    def born(self, nodes: Iterable[int]) -> None:
        self._nodes.update(nodes)

    def lock(self) -> None:
        if not self._nodes:
            Observer.lock(self.cluster_id)

    def add_up(self) -> None:
        if self._nodes:
            add(self.cluster_id, self._before, computed_counters(self.cluster_id, self._nodes))
            chunks.draw(self.cluster_id, self._nodes)


_open: ContextVar[Kept | None] = ContextVar("kept", default=None)


@contextmanager
def count_written_nodes(cluster_id: int, nodes: Iterable[int] = ()) -> Iterator[Kept]:
    """Runs a block that writes these nodes or their pools. A nested block counts once, at the end of the outer one."""
    outer = _open.get()
    if outer is not None and outer.cluster_id == cluster_id:
        outer.touch(nodes)
        yield outer
        return
    with transaction.atomic(savepoint=False):
        inner = Kept(cluster_id)
        token = _open.set(inner)
        try:
            inner.touch(nodes)
            yield inner
            inner.add_up()
        finally:
            _open.reset(token)


def recount(cluster_id: int) -> int:
    """Recounts from the nodes. Returns how many rows were wrong: 0, unless a write bypassed `count_written_nodes`."""
    with count_written_nodes(cluster_id) as keeping:
        keeping.lock()
        before, after = stored_counters(cluster_id), computed_counters(cluster_id)
        add(cluster_id, before, after)
        wrong = chunks.draw_all(cluster_id)
    return wrong + sum(
        before[table].get(key) != after[table].get(key) for table in before for key in {*before[table], *after[table]}
    )
