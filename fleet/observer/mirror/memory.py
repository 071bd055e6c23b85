"""What this process knows of the rows it wrote, from one lease to the next, so that heartbeats cost no query.

It is true only while nobody else has written: a lease that another worker held in between makes it worthless.
"""

import threading
from dataclasses import dataclass, field

from kube.resources import NODES

UNREADABLE = -1  # in the place of a fingerprint: whatever can be read of it next is new (no hash is -1)


@dataclass
class Memory:
    epoch: int
    fingerprints: dict[str, dict[str, int]] = field(default_factory=dict)  # by kind, by uid
    likenesses: dict[str, tuple[int, int]] = field(default_factory=dict)  # of nodes, with the fingerprint of their rows
    pools: int = 0  # of the selectors that the nodes were sorted by

    def of(self, kind: str) -> dict[str, int]:
        return self.fingerprints.setdefault(kind, {})


_lock = threading.Lock()
_memories: dict[int, Memory] = {}


def recall(cluster_id: int, *, epoch: int) -> Memory:
    """What the lease before this one left here, if it was ours. An empty memory otherwise."""
    with _lock:
        found = _memories.pop(cluster_id, None)
    if found is None or found.epoch != epoch - 1:
        return Memory(epoch)
    found.epoch = epoch
    return found


def keep(cluster_id: int, memory: Memory) -> None:
    there = memory.of(NODES.name)
    memory.likenesses = {uid: known for uid, known in memory.likenesses.items() if uid in there}
    with _lock:
        _memories[cluster_id] = memory
