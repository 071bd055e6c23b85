"""A pool goes, or a plan is written, while a person says something that names it: never an error of ours."""

from datetime import time

import pytest

from fleet.pools.changes import delete_pool
from operations.models import Freeze
from people.models import AuditEntry
from people.models.audit_entry import broken_links
from rollouts.commands import live_checks, plan_drafts
from rollouts.commands.fleet_freezes import Where, freeze
from rollouts.commands.maintenance_windows import make_window
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.commands.stage_drafts import StageDraft
from rollouts.models import MaintenanceWindow, Plan, StageKind
from tests.locks import while_it_is_written
from tests.make import NOON, a_draft, a_fleet, a_pool, a_user

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]
NIGHT = {"rule": "FREQ=DAILY", "first_day": NOON.date(), "opens_at": time(2), "zone": "UTC", "duration_s": 7200}


def freeze_it(pool) -> None:
    freeze(Where(pool.cluster, pool), actor="ada", reason="x", now=NOON)


def open_it_at_night(pool) -> None:
    make_window(MaintenanceWindow(cluster=pool.cluster, pool=pool, by="ada", reason="x", at=NOON, **NIGHT), now=NOON)


@pytest.mark.parametrize("restrain", [freeze_it, open_it_at_night])
def test_a_pool_that_is_gone_by_now_is_neither_frozen_nor_has_a_window(restrain):
    pool = a_pool(a_fleet(), "late")

    refusals = while_it_is_written(
        lambda: delete_pool(type(pool).objects.get(pk=pool.pk), actor="ada", now=NOON), lambda: restrain(pool)
    )

    assert [str(each) for each in refusals] == ["Somebody has deleted pool late since you read it."]
    assert isinstance(refusals[0], Refusal)
    assert not Freeze.objects.exists()
    assert not MaintenanceWindow.objects.exists()


@pytest.mark.parametrize("is_new", [True, False])
def test_a_draft_that_names_a_pool_while_it_is_deleted_is_told_which_stage(is_new):
    cluster, ada = a_fleet(), a_user("ada", role="operator")
    pool, plan = a_pool(cluster, "late"), a_draft(cluster, author=ada)
    stages = [StageDraft("Canary", StageKind.CANARY, count=1), StageDraft("Late", StageKind.POOL, pool_id=pool.pk)]
    asked = {"title": "", "to_version": plan.to_version, "stages": stages, "actor": ada, "now": NOON}

    def write() -> None:
        if is_new:
            plan_drafts.draft(cluster=cluster, driver_object=cluster.driver_objects.first(), **asked)
        else:
            plan_drafts.edit(Plan.objects.get(pk=plan.pk), expected_revision=plan.revision, **asked)

    refusals = while_it_is_written(lambda: delete_pool(pool, actor="ada", now=NOON), write)

    assert [type(each) for each in refusals] == [BadPlan]
    assert [each["field"] for each in refusals[0].problems] == ["stages.1.pool"]
    assert Plan.objects.get().revision == plan.revision


def test_a_cluster_is_asked_about_a_draft_while_somebody_edits_it():
    """Both write the plan's chain."""
    ada = a_user("ada", role="operator")
    plan = a_draft(a_fleet(), author=ada)
    stages = plan_drafts.stages_of(plan)

    def edit() -> None:
        plan_drafts.edit(
            Plan.objects.get(pk=plan.pk), title="Another", to_version=plan.to_version, stages=stages,
            expected_revision=plan.revision, actor=ada, now=NOON,
        )  # fmt: skip

    refusals = while_it_is_written(edit, lambda: live_checks.ask(Plan.objects.get(pk=plan.pk), actor=ada, now=NOON))

    assert refusals == []
    entries = AuditEntry.objects.filter(subject=plan.mark)
    assert {"edit", "check-live"} <= set(entries.values_list("verb", flat=True))
    assert list(broken_links(entries)) == []
