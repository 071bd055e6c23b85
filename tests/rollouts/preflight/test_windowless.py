"""A gate that waits for a maintenance window which never opens is refused with the draft, and named with its stage."""

from dataclasses import replace
from datetime import date, time, timedelta
from typing import Any

import pytest

from fleet.models import Node
from rollouts.commands.plan_start import start
from rollouts.commands.preview import preview
from rollouts.commands.refusals import Blocked
from rollouts.models import MaintenanceWindow
from tests.make import NOON, a_pool
from tests.rollouts.rows import CANARY, GATES, REST, a_draft


def a_window(cluster, **given: Any) -> MaintenanceWindow:
    row: dict[str, Any] = {
        "rule": "FREQ=WEEKLY;BYDAY=SA", "first_day": date(2026, 1, 3), "opens_at": time(2), "zone": "Europe/Berlin",
        "duration_s": 3600, "by": "root", "at": NOON,
    }  # fmt: skip
    return MaintenanceWindow.objects.create(cluster=cluster, **row | given)


def a_plan_with(cluster, owner, **options: Any):
    rest = replace(REST, gate_options=GATES | {"window": options})
    return a_draft(cluster, owner, stages=(CANARY, rest))


def barred(plan) -> list[str]:
    return [check.sentence for check in preview(plan, now=NOON).blockers]


def test_a_stage_that_waits_for_a_window_where_there_is_none_cannot_start(cluster, owner):
    plan = a_plan_with(cluster, owner)

    assert barred(plan) == ["No maintenance window covers 2 nodes. Maintenance window of Rest could never pass."]
    with pytest.raises(Blocked, match="No maintenance window covers"):
        start(plan, actor=owner, reason="Go.", expected_revision=1, now=NOON)


def test_one_of_the_cluster_covers_all_and_one_of_a_pool_its_nodes(cluster, owner):
    plan = a_plan_with(cluster, owner)
    pool = a_pool(cluster, "late", selector="tier=late")
    Node.objects.get(name="node-1").pools.add(pool)

    a_window(cluster, pool=pool)
    assert barred(plan) == ["No maintenance window covers node-2. Maintenance window of Rest could never pass."]
    a_window(cluster)
    assert barred(plan) == []


def test_an_advisory_one_bars_nothing(cluster, owner):
    assert barred(a_plan_with(cluster, owner, advisory=True)) == []


def test_one_that_has_opened_for_the_last_time_bars_the_start(cluster, owner):
    plan = a_plan_with(cluster, owner)
    a_window(cluster, rule="FREQ=DAILY;COUNT=1")

    ended = (
        f"The maintenance window of cluster {cluster.name} does not open again. Remove it, or create another window."
    )
    assert barred(plan) == [f"A maintenance window does not open again. {ended}"]


@pytest.mark.parametrize(("must_last", "bars"), [(timedelta(hours=1), False), (timedelta(hours=2), True)])
def test_one_that_is_never_open_for_so_long_bars_the_start(cluster, owner, must_last, bars):
    plan = a_plan_with(cluster, owner, must_last_s=int(must_last.total_seconds()))
    a_window(cluster)

    said = ["No maintenance window of 2 nodes lasts 2 h. Maintenance window of Rest could never pass."]
    assert barred(plan) == (said if bars else [])


def test_one_that_is_long_enough_is_found_behind_many_that_are_not(cluster, owner):
    """Two short ones a day, and a long one in the night of the first Sunday of a month."""
    plan = a_plan_with(cluster, owner, must_last_s=4 * 3600)
    a_window(cluster, rule="FREQ=DAILY", opens_at=time(6))
    a_window(cluster, rule="FREQ=DAILY", opens_at=time(18))
    assert barred(plan) == ["No maintenance window of 2 nodes lasts 4 h. Maintenance window of Rest could never pass."]

    a_window(cluster, rule="FREQ=MONTHLY;BYDAY=1SU", first_day=date(2026, 12, 27), duration_s=8 * 3600)

    assert barred(plan) == []
