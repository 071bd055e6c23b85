"""Followers of an operation in apps above: the case of its node. They register here, since they import this app."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.models import Node
from health.models import Finding
from operations.models import Operation


@dataclass(frozen=True)
class Follower:
    """A page that shows the node's next steps."""

    title: str
    address: str
    reasons: Mapping[str, str]  # for the next operation by its kind, unless the person writes another


# Each opens a follow-up of the node from a finding, in the transaction of the start.
OPENERS: list[Callable[[Operation, Node, Finding], None]] = []
# Each returns the follow-ups of nodes, by their UIDs: open now, or as of a time. A node without one is left out.
FOLLOWERS: list[Callable[[Collection[str], datetime | None], Mapping[str, Follower]]] = []


def open_followers(operation: Operation, node: Node, finding: Finding) -> None:
    for opener in OPENERS:
        opener(operation, node, finding)


def follower_of(node_uid: str) -> Follower | None:
    """Returns the open follow-up of a node. None: no follow-up."""
    return _followers((node_uid,), None).get(node_uid)


def followers_of(operation: Operation, node_uids: Collection[str]) -> dict[str, Follower]:
    """Returns the follow-ups of an operation's nodes, also ended ones, by UID. Those without one are left out."""
    return _followers(node_uids, operation.asked_at)


def _followers(node_uids: Collection[str], at: datetime | None) -> dict[str, Follower]:
    return {uid: found for follower in reversed(FOLLOWERS) for uid, found in follower(node_uids, at).items()}
