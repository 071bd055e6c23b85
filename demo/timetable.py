"""What happens in the demo's cluster, by the minute. Pure: the same nodes and the same seed give the same.

It begins with each start of the demo, and begins again after its last minute.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from demo.teams import Made, evaluation, lasting

ROUND_MIN = 30.0
HOT_MIN, COOL_MIN = 1.0, 12.0
FALLEN_MIN, REPLACED_MIN = 3.0, 25.0
BUSY_MIN, DONE_MIN = 2.0, 8.0
OFF_THE_BUS_AFTER_S = 60.0
GPUS_A_NODE = 8


@dataclass(frozen=True)
class Scene:
    """One thing that begins and ends. A fault is the simulator's; what is made is the Kubernetes API's."""

    begins_min: float
    ends_min: float
    says: str = ""  # to a person who watches the terminal, when it begins; blank: nothing
    ended: str = ""  # and when it ends
    fault: Mapping[str, Any] = field(default_factory=dict)
    made: Sequence[Made] = ()

    def is_on(self, minute: float) -> bool:
        return self.begins_min <= minute % ROUND_MIN < self.ends_min


def timetable(nodes: Sequence[str], seed: int) -> list[Scene]:
    """Return all scenes of a round. What breaks is in the second half of the nodes: plans begin with the first."""
    always = Scene(0.0, ROUND_MIN, made=lasting())
    victims = sorted(nodes)[len(nodes) // 2 :]
    if not victims:
        return [always]
    chance = random.Random(seed)
    chance.shuffle(victims)
    first, second = chance.sample(range(GPUS_A_NODE), 2)
    return [always, heat(victims[0], first), fall(victims[-1], second), load()]


def heat(node: str, gpu: int) -> Scene:
    """One GPU gets too hot, and recovers."""
    fault = {"key": "hot_gpu", "node": node, "gpu": gpu, "celsius": 92.0, "clock_ratio": 0.7}
    says, ended = f"GPU {gpu} of {node} begins to overheat.", f"GPU {gpu} of {node} is cooled again."
    return Scene(HOT_MIN, COOL_MIN, says, ended, fault)


def fall(node: str, gpu: int) -> Scene:
    """One GPU falls off the bus, until somebody has replaced it."""
    fault = {"key": "fallen_gpu", "node": node, "gpu": gpu, "after_s": OFF_THE_BUS_AFTER_S}
    says, ended = f"GPU {gpu} of {node} falls off the bus: Xid 79.", f"GPU {gpu} of {node} was replaced."
    return Scene(FALLEN_MIN, REPLACED_MIN, says, ended, fault)


def load() -> Scene:
    """A team's evaluation pushes jobs of the queue aside for some minutes."""
    says, ended = "The evaluation of a model begins: jobs of the queue make room for it.", "The evaluation has ended."
    return Scene(BUSY_MIN, DONE_MIN, says, ended, made=evaluation())
