"""The sequence numbers with which a page is rendered, so that it does not fetch known changes again."""

import json
from collections.abc import Callable, Collection, Mapping

from fleet.messages.announce import cluster_group

# Of clusters, by topic: apps above register their numbers.
MORE: list[Callable[[Collection[int]], Mapping[str, int]]] = []


def numbers_of(batches: Mapping[int, int]) -> str:
    """Returns the numbers for a page. `batches` are those of its clusters, read before their data."""
    found = {cluster_group(cluster): batch for cluster, batch in batches.items()}
    for numbers in MORE:
        found |= numbers(batches)
    return json.dumps(found)
