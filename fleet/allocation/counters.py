"""The sums of nodes, kept by whoever writes nodes: in the same transaction, and by the statement that counts anew.

Every write of a node, or of the pools it is in, stands inside `kept(cluster_id, nodes)`. It counts those nodes before
and after, and adds the difference to the tables of sums; then the map's pieces of them are drawn. `recount` does so for
the whole cluster.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction

from fleet.allocation.sums import CountedSums, add, counted, written
from fleet.map_cells import chunks
from fleet.models import Observer


class Kept:
    """What is written of one cluster's nodes in one transaction."""

    def __init__(self, cluster_id: int) -> None:
        self.cluster_id = cluster_id
        self._nodes: set[int] = set()
        self._before: CountedSums = {}

    def touch(self, nodes: Iterable[int]) -> None:
        """Before these are written."""
        if new := set(nodes) - self._nodes:
            self.lock()
            for table, rows in counted(self.cluster_id, new).items():
                before = self._before.setdefault(table, {})
                for key, numbers in rows.items():
                    before.setdefault(key, Counter()).update(numbers)
            self._nodes |= new

    def born(self, nodes: Iterable[int]) -> None:
        """These were not there before."""
        self._nodes.update(nodes)

    def lock(self) -> None:
        """Whoever keeps the sums of a cluster does so alone."""
        if not self._nodes:
            Observer.lock(self.cluster_id)

    def add_up(self) -> None:
        if self._nodes:
            add(self.cluster_id, self._before, counted(self.cluster_id, self._nodes))
            chunks.draw(self.cluster_id, self._nodes)


_open: ContextVar[Kept | None] = ContextVar("kept", default=None)


@contextmanager
def kept(cluster_id: int, nodes: Iterable[int] = ()) -> Iterator[Kept]:
    """Write these nodes inside, or put them into pools. One inside another adds up once, at the end of the outer."""
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
    """From the nodes themselves. How many rows were not as they should be: 0, unless somebody wrote past `kept`."""
    with kept(cluster_id) as keeping:
        keeping.lock()
        before, after = written(cluster_id), counted(cluster_id)
        add(cluster_id, before, after)
        wrong = chunks.draw_all(cluster_id)
    return wrong + sum(
        before[table].get(key) != after[table].get(key) for table in before for key in {*before[table], *after[table]}
    )
