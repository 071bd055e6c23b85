"""What the apps above this one want to hear of a cluster while it is watched: each adds itself in `AppConfig.ready`."""

from collections.abc import Callable, Iterable

Listener = Callable[[int], None]  # given the key of the cluster

JUDGED: list[Listener] = []  # a node or a pod changed, or how the cluster is heard
CHANGED: list[Listener] = []  # anything did that is more than an Event
CRASHED: list[Listener] = []  # a container of an operand is newly stuck


def tell(listeners: Iterable[Listener], cluster_id: int) -> None:
    for listener in listeners:
        listener(cluster_id)
