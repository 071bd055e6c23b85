"""The exclusions of a plan: which nodes have one, and since when others have none any more."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rollouts.engine.snapshot import NodeExclusions
from rollouts.models import Exclusion, Plan, Target


@dataclass(frozen=True)
class PlanExclusions:
    in_force: Mapping[str, NodeExclusions]  # by node uid
    ended_at: Mapping[str, datetime]  # node's name → when it was last read back that nothing of ours is there
    back: Mapping[str, tuple[str, ...]]  # node's name, where all is as it was → controllers that were kept off
    left: tuple[str, ...]  # sentences: where it is not

    def last_ended(self, targets: Iterable[Target]) -> datetime | None:
        """Returns when the last of these exclusions ended; None if there never was one."""
        names = {target.node_name for target in targets}
        return max((at for name, at in self.ended_at.items() if name in names), default=None)


def read_exclusions(plan: Plan) -> PlanExclusions:
    """Reads the exclusions with one query."""
    in_force: dict[str, list[Exclusion]] = defaultdict(list)
    ended_at: dict[str, datetime] = {}
    ended: dict[str, tuple[str, ...]] = defaultdict(tuple)
    left: dict[str, str] = {}
    for row in Exclusion.objects.filter(plan=plan):
        if row.ended_at is None:
            in_force[row.node_uid].append(row)
        elif row.placed_at is not None:
            ended[row.node_name] += (row.external_controller.title,)
            ended_at[row.node_name] = max(row.ended_at, ended_at.get(row.node_name, row.ended_at))
            if row.left_reason:
                left[row.node_name] = f"{row.node_name}: {row.left_reason}"
    not_yet = left.keys() | {row.node_name for rows in in_force.values() for row in rows}
    back = {name: who for name, who in ended.items() if name not in not_yet}
    off = {uid: _node_exclusions(rows) for uid, rows in in_force.items()}
    return PlanExclusions(off, ended_at, back, tuple(left.values()))


def _node_exclusions(rows: list[Exclusion]) -> NodeExclusions:
    return NodeExclusions(
        name=rows[0].node_name,
        controllers=tuple(row.external_controller.title for row in rows),
        is_wanted=all(row.is_wanted for row in rows),
        is_placed=all(row.placed_at for row in rows),
        trouble=next((row.trouble for row in rows if row.trouble), ""),
    )
