"""What a worker that takes over a cluster must know of its rows before it hears anything.

An event names a pod by its UID: whether that pod is one we keep is not asked of the database for every event. And what
is kept no longer, as when a node loses its GPUs, can only be told from what never was by those who know what was.
"""

from fleet.observe.kinds import KINDS, MIRRORED
from fleet.observe.memory import UNREADABLE, Memory


def learn(cluster_id: int, memory: Memory) -> None:
    """Costs one query for each kind of which nothing is known: a quarter of a second for 50,000 pods."""
    for name in MIRRORED:
        known = memory.of(name)
        if not known:
            uids = KINDS[name].rows_of(cluster_id).order_by().values_list("uid", flat=True)
            known.update(dict.fromkeys(uids.iterator(), UNREADABLE))
