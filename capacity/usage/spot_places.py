"""The clusters with spot nodes: the label that chooses them, and the pools that consist of them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from fleet.models import Node
from gpu.labels import CAPACITY_TYPES, GKE_SPOT
from people.models import User

SPOT = "spot"


@dataclass(frozen=True)
class SpotPlaces:
    labels: Mapping[str, str] = field(default_factory=dict)  # by cluster: the label that its spot nodes have, as k=v
    pools: Mapping[tuple[str, str], set[str]] = field(default_factory=dict)  # likewise, by pool: its capacity types

    def label_for(self, cluster: str, pools: str) -> str:
        """Returns the label that chooses spot nodes. Blank: the cluster has none, or these pools have them alone."""
        types = [self.pools.get((cluster, name), set()) for name in pools.split(", ")]
        is_there = bool(types) and all(each == {SPOT} for each in types)
        return "" if is_there else self.labels.get(cluster, "")


def spot_places(user: User) -> SpotPlaces:
    """Returns the places of spot nodes that the user sees. One query, and two for each cluster with spot nodes."""
    nodes = Node.objects.visible_to(user).with_gpus().order_by()
    spot = nodes.filter(capacity_type=SPOT)
    labels, pools = dict[str, str](), defaultdict[tuple[str, str], set[str]](set)
    for cluster, name in spot.values_list("cluster", "cluster__name").distinct():
        labels[name] = _label(*next(iter(spot.filter(cluster=cluster).values_list("labels")[:1]), ({},)))
        for pool, kind in nodes.filter(cluster=cluster).values_list("pools__name", "capacity_type").distinct():
            pools[name, pool or ""].add(kind)
    return SpotPlaces(labels, pools)


def _label(labels: Mapping[str, str]) -> str:
    key = next((key for key in (*CAPACITY_TYPES, *GKE_SPOT) if labels.get(key)), "")
    return f"{key}={labels[key]}" if key else ""
