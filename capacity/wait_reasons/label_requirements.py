"""Requirements on labels of nodes, matched as Kubernetes does. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One requirement of a node affinity term, or one label of a node selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    is_field: bool = False  # about the node's name

    @property
    def text(self) -> str:
        """Returns `zone=a`, `zone in (a, b)`, `zone`, `!zone` or `cores > 8`."""
        values = self.values[:SHOWN]
        more = f" and {len(self.values) - SHOWN} more" if len(self.values) > SHOWN else ""
        match self.operator:
            case "In" if len(values) == 1:
                return f"{self.key}={values[0]}"
            case "In" | "NotIn":
                return f"{self.key} {'in' if self.operator == 'In' else 'not in'} ({', '.join(values)}{more})"
            case "Exists":
                return self.key
            case "DoesNotExist":
                return f"!{self.key}"
            case "Gt" | "Lt" as operator:
                return f"{self.key} {'>' if operator == 'Gt' else '<'} {''.join(values[:1])}"
        return f"{self.key} {self.operator}"

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Tells whether a node with these labels satisfies it. An unknown operator takes no node."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case "DoesNotExist":
                return self.key not in labels
            case "Gt" | "Lt" as operator:
                return bool(self.values) and is_beyond(operator, labels.get(self.key, ""), self.values[0])
        return False


SHOWN = 3  # values in a text
Term = tuple[LabelRequirement, ...]


def read_terms_of_nodes(stored: Iterable[Iterable[Mapping[str, Any]]]) -> tuple[Term, ...]:
    """Reads the stored terms of a node affinity."""
    return tuple(tuple(map(_requirement, term)) for term in stored)


def _requirement(stored: Mapping[str, Any]) -> LabelRequirement:
    return LabelRequirement(
        stored.get("key", ""), stored.get("operator", ""), tuple(stored.get("values") or ()), bool(stored.get("field"))
    )


def is_beyond(operator: str, value: str, bound: str) -> bool:
    """Compares whole numbers by `Gt` or `Lt`; a text that is none compares with nothing."""
    try:
        return int(value) > int(bound) if operator == "Gt" else int(value) < int(bound)
    except ValueError:
        return False
