"""Followers of an operation in apps above: the case of its node. They register here, since they import this app."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

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
# Each returns the follow-up of a node, by its UID. None: no follow-up.
FOLLOWERS: list[Callable[[str], Follower | None]] = []


def open_followers(operation: Operation, node: Node, finding: Finding) -> None:
    for opener in OPENERS:
        opener(operation, node, finding)


def follower_of(node_uid: str) -> Follower | None:
    return next((found for follower in FOLLOWERS if (found := follower(node_uid)) is not None), None)
