from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from simulator.wire.ages import age

Obj = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    cell: Callable[[Obj, datetime], Any]
    type: str = "string"
    priority: int = 0
    """0 is always shown; 1 only in `-o wide`."""
    format: str = ""
    description: str = ""

    def definition(self) -> Obj:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or self.name,
            "priority": self.priority,
        }


def reading(path: str, default: Any = "") -> Callable[[Obj, datetime], Any]:
    """A cell that shows the member at a dotted path."""
    parts = path.split(".")

    def cell(obj: Obj, _now: datetime) -> Any:
        found: Any = obj
        for part in parts:
            found = found.get(part) if isinstance(found, dict) else None
        return default if found is None else found

    return cell


def counting(path: str) -> Callable[[Obj, datetime], Any]:
    read = reading(path, {})
    return lambda obj, now: len(read(obj, now))


def selector_text(labels: Obj | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or "<none>"


NAME = Column("Name", reading("metadata.name"), format="name", description="Name must be unique within a namespace.")
AGE = Column(
    "Age",
    lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now),
    description="CreationTimestamp is the server time when this object was created.",
)
CREATED_AT = Column("Created At", reading("metadata.creationTimestamp"), type="date")
