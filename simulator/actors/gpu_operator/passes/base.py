from collections.abc import Callable
from dataclasses import dataclass

from simulator.actors.gpu_operator.acts import Acts
from simulator.actors.gpu_operator.evictions import Evictions
from simulator.actors.gpu_operator.policy import Policy
from simulator.actors.gpu_operator.snapshot import Snapshot
from simulator.actors.world import World


@dataclass(frozen=True)
class Hands:
    """What a pass works with."""

    world: World
    acts: Acts
    evictions: Evictions
    is_26_7: bool  # restarts without eviction where it can, and sees who holds GPUs by claims


Pass = Callable[[Hands, Snapshot, Policy], None]
