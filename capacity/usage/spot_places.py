"""The clusters with spot nodes: the label that chooses them, and the pools that consist of them."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.db.models.fields.json import KeyTextTransform

from capacity.usage.price_book import LABELLED
from fleet.models import Node
from gpu.labels import CAPACITY_TYPES
from people.models import User

SPOT = "spot"


@dataclass(frozen=True)
class SpotPlaces:
    labels: Mapping[str, str] = field(default_factory=dict)  # by cluster: the label that its spot nodes have, as k=v
    pools: Mapping[tuple[str, str], set[str]] = field(default_factory=dict)  # by cluster and pool: capacity types

    def label_for(self, cluster: str, pools: str) -> str:
        """Returns the label that chooses spot nodes. Blank: the cluster has none, or these pools have them alone."""
        types = [self.pools.get((cluster, name), set()) for name in pools.split(", ")]
        is_there = bool(types) and all(each == {SPOT} for each in types)
        return "" if is_there else self.labels.get(cluster, "")


def spot_places(user: User) -> SpotPlaces:
    """Returns the places of spot nodes that the user sees. One query."""
    keys = {f"type_{place}": KeyTextTransform(key, "labels") for place, key in enumerate(CAPACITY_TYPES)}
    nodes = Node.objects.visible_to(user).with_gpus().order_by().annotate(**keys)
    labels: dict[str, str] = {}
    pools: dict[tuple[str, str], set[str]] = defaultdict(set)
    for cluster, pool, *values in nodes.values_list("cluster__name", "pools__name", *keys).distinct():
        key, value = next(((key, value) for key, value in zip(CAPACITY_TYPES, values, strict=True) if value), ("", ""))
        kind = LABELLED.get(value.lower(), "")
        pools[cluster, pool or ""].add(kind)
        if kind == SPOT:
            labels[cluster] = f"{key}={value}"
    return SpotPlaces(labels, pools)
