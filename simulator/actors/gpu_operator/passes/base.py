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
    can_restart_only: bool  # 26.7 and later


Pass = Callable[[Hands, Snapshot, Policy], None]
