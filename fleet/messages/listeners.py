"""Listeners of apps above for changes of watched clusters; each registers itself in `AppConfig.ready`."""

from collections.abc import Callable, Collection, Iterable

Listener = Callable[[int], None]  # called with the cluster's key

STATE_CHANGED: list[Listener] = []  # a node, a pool or the observation state changed
CHANGED: list[Listener] = []  # anything changed except Events
CRASHED: list[Listener] = []  # a container of an operand is newly stuck
HAPPENED: list[Listener] = []  # a domain event is ready to be read


def notify(listeners: Iterable[Listener], cluster_id: int) -> None:
    for listener in listeners:
        listener(cluster_id)


# Called with the key of a cluster and the UIDs of the nodes that its new events are about, for pages.
RECORDED: list[Callable[[int, Collection[str]], None]] = []


def notify_of_events(cluster_id: int, node_uids: Collection[str]) -> None:
    for listener in RECORDED:
        listener(cluster_id, node_uids)
