"""What waits to be written of one object."""

from dataclasses import dataclass

from fleet.observe.mirror.diff import Row


@dataclass(frozen=True)
class Pending:
    """`row` None: the object is gone."""

    row: Row | None
    resource_version: str
    fingerprint: int
