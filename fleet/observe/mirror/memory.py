"""What this process knows of the rows it wrote, from one turn to the next, so that heartbeats cost no query.

It is true only while nobody else has written: a turn that another worker took in between makes it worthless.
"""

import threading
from dataclasses import dataclass, field

UNREADABLE = -1  # in the place of a fingerprint: whatever can be read of it next is new (no hash is -1)


@dataclass
class Memory:
    turn: int
    fingerprints: dict[str, dict[str, int]] = field(default_factory=dict)  # by kind, by uid
    likenesses: dict[str, tuple[int, int]] = field(default_factory=dict)  # of nodes, with the fingerprint of their rows
    pools: int = 0  # of the selectors that the nodes were sorted by

    def of(self, kind: str) -> dict[str, int]:
        return self.fingerprints.setdefault(kind, {})


_lock = threading.Lock()
_memories: dict[int, Memory] = {}


def recall(cluster_id: int, *, turn: int) -> Memory:
    """What the turn before this one left here, if it was ours. An empty memory otherwise."""
    with _lock:
        found = _memories.pop(cluster_id, None)
    if found is None or found.turn != turn - 1:
        return Memory(turn)
    found.turn = turn
    return found


def keep(cluster_id: int, memory: Memory) -> None:
    there = memory.of("nodes")
    memory.likenesses = {uid: known for uid, known in memory.likenesses.items() if uid in there}
    with _lock:
        _memories[cluster_id] = memory
