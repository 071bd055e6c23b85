"""Topics that a browser may subscribe to, and their authorization."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from django.utils import timezone

from edges.digits import whole_number
from fleet.freshness.kinds import NODES
from fleet.messages import announce
from fleet.models import Bookmark, Cluster, Observer
from people.models import User
from people.rights import Permission, scope_of


@dataclass(frozen=True)
class OpenedTopic:
    """A topic as opened for one person."""

    groups: tuple[str, ...]
    keys: frozenset[str]  # keys of its sequences: cluster-1, plan-7
    nodes_of: frozenset[int] | None = frozenset()  # clusters whose nodes they see completely; None: all clusters


class Topic(Protocol):
    """A kind of topic. Its methods may query the database: they run on connect and once per heartbeat."""

    def open(self, user: User, name: str) -> OpenedTopic | None:
        """Opens a name for a user. None: unknown, or not allowed."""

    def sequences(self) -> dict[str, int]:
        """Returns the newest number of every key."""

    def last_seen(self) -> dict[str, str]:
        """Returns the last update of each key's source; keys without a source are missing."""


def pulse_of(topics: Sequence[Topic]) -> dict[str, Any]:
    """Returns the newest numbers of all topics; each socket passes on its part."""
    pulse: dict[str, Any] = {"server_time": timezone.now().isoformat(), "seq": {}, "last_seen": {}}
    for topic in topics:
        pulse["seq"] |= topic.sequences()
        pulse["last_seen"] |= topic.last_seen()
    return pulse


@dataclass(frozen=True)
class ClusterTopics:
    """The topics `fleet` (all visible clusters) and `cluster-7` (one of them)."""

    def open(self, user: User, name: str) -> OpenedTopic | None:
        visible = Cluster.objects.visible_to(user).values_list("pk", flat=True)
        seen = scope_of(user, Permission.SEE)
        nodes_of = None if seen.everywhere else seen.cluster_ids
        if name == announce.fleet_group():
            keys = frozenset(announce.cluster_group(pk) for pk in visible)
            return OpenedTopic((announce.fleet_group(),), keys, nodes_of)
        kind, _, key = name.partition("-")
        if kind != "cluster" or (pk := whole_number(key)) is None or pk not in set(visible):
            return None
        return OpenedTopic((announce.cluster_group(pk),), frozenset({announce.cluster_group(pk)}), nodes_of)

    def sequences(self) -> dict[str, int]:
        rows = Observer.objects.values_list("cluster_id", "batch")
        return {announce.cluster_group(cluster_id): batch for cluster_id, batch in rows}

    def last_seen(self) -> dict[str, str]:
        """Returns the last updates. A page ages by its nodes' bookmark even without changes."""
        rows = Bookmark.objects.filter(kind=NODES, last_seen_at__isnull=False).values_list("cluster_id", "last_seen_at")
        return {announce.cluster_group(cluster_id): at.isoformat() for cluster_id, at in rows if at}
