"""What waits to be written of one object."""

from dataclasses import dataclass

from fleet.observer.mirror.rows import Columns


@dataclass(frozen=True)
class Pending:
    """`row` None: the object is gone."""

    row: Columns | None
    resource_version: str
    fingerprint: int
