"""The numbers that a page is made at: what it has heard of by then, and is not to fetch once more when it opens."""

import json
from collections.abc import Callable, Collection, Mapping

from fleet.messages.announce import cluster_group

# Of clusters, by topic: the apps above register what they number.
MORE: list[Callable[[Collection[int]], Mapping[str, int]]] = []


def numbers_of(batches: Mapping[int, int]) -> str:
    """As a page carries them. `batches`: of each cluster that it shows. Read before what it shows is."""
    found = {cluster_group(cluster): batch for cluster, batch in batches.items()}
    for numbers in MORE:
        found |= numbers(batches)
    return json.dumps(found)
