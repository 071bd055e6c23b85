"""Where a walk led, kept for the next test of this process that would go the same way from the same beginning.

Its rows and the objects of its cluster are put back as they were. What a walk asked the API server is in no log then,
and what it would have called is not called: a test that is about the walk itself goes it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from simulator.store import Store
from tests.saved_rows import Rows

Objects = list[tuple[tuple[str, str, str], dict[str, Any]]]  # each with its group, version and plural


@dataclass(frozen=True)
class Kept:
    rows: Rows
    objects: Objects
    version: int
    at: datetime


def objects(store: Store) -> Objects:
    """No copy: what is stored nobody changes."""
    with store.lock:
        kinds = {kind.shelf: kind for kind in store.kinds.values()}.values()
        return [
            ((kind.group, kind.version, kind.plural), record.obj)
            for kind in kinds
            for record in store.shelf(kind).records.values()
        ]
