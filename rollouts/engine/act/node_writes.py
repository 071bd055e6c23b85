"""Labels, annotations and cordon that are written with a hold in one patch, or alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kube import client
from kube.structs import NodeSeen

Values = Mapping[str, str | None]  # None: the key goes


@dataclass(frozen=True)
class NodeWrite:
    labels: Values = field(default_factory=dict)
    annotations: Values = field(default_factory=dict)
    is_unschedulable: bool | None = None  # None: left as it is

    def __or__(self, other: "NodeWrite") -> "NodeWrite":
        """Merges both writes; where they differ, `other` wins."""
        is_unschedulable = self.is_unschedulable if other.is_unschedulable is None else other.is_unschedulable
        return NodeWrite({**self.labels, **other.labels}, {**self.annotations, **other.annotations}, is_unschedulable)


Beside = Callable[[NodeSeen], NodeWrite]


def nothing_else(seen: NodeSeen) -> NodeWrite:  # noqa: ARG001
    return NodeWrite()


def both(one: Beside, other: Beside) -> Beside:
    return lambda seen: one(seen) | other(seen)


def alone(beside: Beside) -> Callable[[NodeSeen], client.Patch]:
    """Returns the write as a patch of its own."""
    return lambda seen: patch_of(seen, beside(seen))


def patch_of(seen: NodeSeen, wanted: NodeWrite) -> client.Patch:
    return client.node_patch(
        seen, labels=wanted.labels, annotations=wanted.annotations, is_unschedulable=wanted.is_unschedulable
    )
