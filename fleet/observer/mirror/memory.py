"""The process's memory of written rows between leases, so that heartbeats cost no query.

It is valid only while no other worker writes, so a lease of another worker discards it.
"""

import threading
from dataclasses import dataclass, field

from kube.resources import NODES

UNREADABLE = -1  # replaces a fingerprint: any readable version is new (no hash is -1)


@dataclass
class Memory:
    epoch: int
    fingerprints: dict[str, dict[str, int]] = field(default_factory=dict)  # by kind and uid
    likenesses: dict[str, tuple[int, int]] = field(default_factory=dict)  # of nodes, with the fingerprint of their rows

    def of(self, kind: str) -> dict[str, int]:
        return self.fingerprints.setdefault(kind, {})


_lock = threading.Lock()
_memories: dict[int, Memory] = {}


def recall(cluster_id: int, *, epoch: int) -> Memory:
    """Returns the memory of the previous lease if it was ours; else an empty one."""
    with _lock:
        found = _memories.pop(cluster_id, None)
    if found is None or found.epoch != epoch - 1:
        return Memory(epoch)
    found.epoch = epoch
    return found


def keep_memory(cluster_id: int, memory: Memory) -> None:
    there = memory.of(NODES.name)
    memory.likenesses = {uid: known for uid, known in memory.likenesses.items() if uid in there}
    with _lock:
        _memories[cluster_id] = memory
