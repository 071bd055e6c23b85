"""The cordons of a plan: which nodes have one, and since when others have none any more."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.engine.snapshot import CordonedByUs
from rollouts.engine.test_jobs import PlanTestJobs
from rollouts.models import Cordon, Plan, Target


@dataclass(frozen=True)
class Cordons:
    in_force: Mapping[str, CordonedByUs] = field(default_factory=dict)  # by node uid
    ended_at: Mapping[str, datetime] = field(default_factory=dict)  # node uid → when it was last read back to be gone
    left: tuple[str, ...] = ()  # sentences: where a node is cordoned all the same

    def has(self, uid: str, *, is_shown: bool, seen_at: datetime) -> bool:
        """Returns whether our cordon keeps pods off the node, also if only older rows show that."""
        ended = self.ended_at.get(uid)
        return uid in self.in_force or (is_shown and ended is not None and ended >= seen_at)

    def last_ended(self, targets: Iterable[Target]) -> datetime | None:
        """Returns when the last of these cordons ended; None if there never was one."""
        uids = {target.node_uid for target in targets}
        return max((at for uid, at in self.ended_at.items() if uid in uids), default=None)


def read_cordons(plan: Plan, test_jobs: PlanTestJobs) -> Cordons:
    """Reads the cordons with one query."""
    in_force: dict[str, CordonedByUs] = {}
    ended_at: dict[str, datetime] = {}
    left: dict[str, str] = {}
    for row in Cordon.objects.filter(plan=plan).order_by("pk"):
        if row.ended_at is None:
            in_force[row.node_uid] = CordonedByUs(
                name=row.node_name,
                is_placed=row.placed_at is not None,
                has_failed=_has_failed(row, test_jobs),
                trouble=row.trouble,
                is_of_halt=row.is_of_halt,
            )
        elif row.placed_at is not None:
            ended_at[row.node_uid] = row.ended_at
            left[row.node_uid] = f"{row.node_name}: {row.left_reason}" if row.left_reason else ""
    return Cordons(in_force, ended_at, tuple(filter(None, left.values())))


def _has_failed(row: Cordon, test_jobs: PlanTestJobs) -> bool:
    """Returns whether the newest test Job on the node failed since the release."""
    newest = test_jobs.newest.get(row.node_uid)
    return newest is not None and newest.intended_at >= row.wanted_since and newest.outcome == TestJobOutcome.FAILED
