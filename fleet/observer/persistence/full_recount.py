"""What is counted of nodes from their pods, anew for a whole cluster, as after a list."""

from itertools import chain

from fleet.allocation.counters import kept
from fleet.observer.persistence import allocation, cpu_memory

AT_ONCE = 500


def count_all(cluster_id: int) -> None:
    """In short transactions of its own, each of which adds up the sums of its nodes once."""
    taken, requested = allocation.differing(cluster_id, None), cpu_memory.differing(cluster_id, None)
    nodes = list(dict.fromkeys(chain(*taken.values(), requested)))  # those of which the same is said come together
    for start in range(0, len(nodes), AT_ONCE):
        some = set(nodes[start : start + AT_ONCE])
        with kept(cluster_id, some):
            allocation.write(
                cluster_id, {each: keys for each, ids in taken.items() if (keys := some.intersection(ids))}
            )
            cpu_memory.write(cluster_id, {key: requested[key] for key in some & requested.keys()})
