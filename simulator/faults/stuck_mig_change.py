from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class StuckMigChange:
    """The MIG manager gives up while it stops what uses the GPUs: that stays paused, and another label is waited for.

    As gpu-operator #2833 has it: the state is `pending` for ever, also once this fault has ended.
    """

    node: str
    key: ClassVar[str] = "stuck_mig_change"
