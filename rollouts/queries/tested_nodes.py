"""The nodes of a plan on which a workload ran since their change, as the gates count it (Z27)."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from operations.test_jobs.test_progress import TestJobOutcome
from rollouts.models import TestJob


class NewestTest(NamedTuple):
    outcome: str
    intended_at: datetime


def newest_tests(plan_id: int) -> Mapping[str, NewestTest]:
    """Returns the newest test Job with a result of each node by node UID. One query.

    A test that runs again takes no earlier result away.
    """
    rows = TestJob.objects.filter(plan=plan_id).exclude(outcome="").order_by("pk")
    return {uid: NewestTest(*of_it) for uid, *of_it in rows.values_list("node_uid", *NewestTest._fields)}


def has_run_since(changed_at: datetime, tenants_ready_at: datetime | None, test: NewestTest | None) -> bool:
    """Returns whether a tenant's pod was Ready on a node, or its newest test Job passed, since its change.

    What ran before the node changed again says nothing about the driver that it has now.
    """
    if tenants_ready_at is not None and tenants_ready_at >= changed_at:
        return True
    return test is not None and test.outcome == TestJobOutcome.PASSED and test.intended_at >= changed_at
