"""What a browser may ask to hear of, and who may hear it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.utils import timezone

from edges.digits import whole
from fleet.freshness.kinds import NODES
from fleet.messages import announce
from fleet.models import Bookmark, Cluster, Observer
from people.models import User
from people.rights import Permission, scope_of


@dataclass(frozen=True)
class OpenedTopic:
    """What one topic comes to for one person."""

    groups: tuple[str, ...]
    keys: frozenset[str]  # the sequences it counts by: cluster-1, plan-7
    nodes_of: frozenset[int] | None = frozenset()  # clusters of which they may see every node; None: all of them


class Topic(Protocol):
    """Everything here may ask the database: it is called when a browser connects, and once a heartbeat."""

    def open(self, user: User, name: str) -> OpenedTopic | None:
        """What `name` means to this user. None: it is no such topic, or not theirs to see."""

    def sequences(self) -> dict[str, int]:
        """The newest number of every key."""

    def heard(self) -> dict[str, str]:
        """When the source of each key was last heard of; no entry where a key has none."""


def pulse_of(topics: Sequence[Topic]) -> dict[str, Any]:
    """The newest numbers of all there is: what a process tells all its sockets, and each passes on its share of."""
    pulse: dict[str, Any] = {"server_time": timezone.now().isoformat(), "seq": {}, "heard": {}}
    for topic in topics:
        pulse["seq"] |= topic.sequences()
        pulse["heard"] |= topic.heard()
    return pulse


@dataclass(frozen=True)
class ClusterTopics:
    """`fleet`: every cluster one may see. `cluster-7`: one of them."""

    def open(self, user: User, name: str) -> OpenedTopic | None:
        visible = Cluster.objects.visible_to(user).values_list("pk", flat=True)
        seen = scope_of(user, Permission.SEE)
        nodes_of = None if seen.everywhere else seen.cluster_ids
        if name == announce.fleet_group():
            keys = frozenset(announce.cluster_group(pk) for pk in visible)
            return OpenedTopic((announce.fleet_group(),), keys, nodes_of)
        kind, _, key = name.partition("-")
        if kind != "cluster" or (pk := whole(key)) is None or pk not in set(visible):
            return None
        return OpenedTopic((announce.cluster_group(pk),), frozenset({announce.cluster_group(pk)}), nodes_of)

    def sequences(self) -> dict[str, int]:
        rows = Observer.objects.values_list("cluster_id", "batch")
        return {announce.cluster_group(cluster_id): batch for cluster_id, batch in rows}

    def heard(self) -> dict[str, str]:
        """A page ages by its nodes' bookmark, also while nothing changes."""
        rows = Bookmark.objects.filter(kind=NODES, heard_at__isnull=False).values_list("cluster_id", "heard_at")
        return {announce.cluster_group(cluster_id): at.isoformat() for cluster_id, at in rows if at}
