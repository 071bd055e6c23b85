"""Rows as earlier versions wrote them, brought up to date and back."""

from collections.abc import Iterator

import pytest
from django.apps.registry import Apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.make import NOON, a_cluster

BEFORE, AFTER = "0003_foreign_templates", "0004_timeouts"
OLD_OPTIONS = {
    "driver_version": {"patience_s": 1800},
    "approval": {"needed": 2, "valid_for_s": 3600},
    "soak": {"duration_s": 60},
}
NEW_OPTIONS = OLD_OPTIONS | {"driver_version": {"timeout_s": 1800}}


def migrated(name: str) -> Apps:
    executor = MigrationExecutor(connection)
    executor.migrate([("rollouts", name)])
    return MigrationExecutor(connection).loader.project_state([("rollouts", name)]).apps


@pytest.fixture
def before(transactional_db: None) -> Iterator[Apps]:
    """The tables as they were, and in the end as they are."""
    yield migrated(BEFORE)
    newest = MigrationExecutor(connection).loader.graph.leaf_nodes("rollouts")
    MigrationExecutor(connection).migrate(newest)


def a_stage(apps: Apps, **given):
    cluster = a_cluster("north").pk  # the other apps stay as they are
    told = {"state": "draft", "state_since": NOON, "created_at": NOON, "edited_at": NOON, "lease_until": NOON}
    sealed = {"stages": [{"gates": {"driver_version": {"patience_s": 1800.0}}}]}
    plan = apps.get_model("rollouts", "Plan").objects.create(
        cluster_id=cluster, sealed=sealed, content_hash="h", **told
    )
    row = {"plan": plan, "index": 0, "name": "Canary", "kind": "canary", "state": "waiting", "state_since": NOON}
    return apps.get_model("rollouts", "Stage").objects.create(**row | given)


def test_patience_becomes_a_timeout_in_stages_and_in_their_gates(before: Apps):
    stage = a_stage(before, patience_s=7200, gate_options=OLD_OPTIONS)

    after = migrated(AFTER).get_model("rollouts", "Stage").objects.select_related("plan").get(pk=stage.pk)

    assert (after.timeout_s, after.gate_options) == (7200, NEW_OPTIONS)
    # What was sealed stays: its hash is of it.
    assert after.plan.sealed["stages"][0]["gates"]["driver_version"] == {"patience_s": 1800.0}


def test_and_back_again(before: Apps):
    stage = a_stage(before, patience_s=7200, gate_options=OLD_OPTIONS)
    migrated(AFTER)

    again = migrated(BEFORE).get_model("rollouts", "Stage").objects.get(pk=stage.pk)

    assert (again.patience_s, again.gate_options) == (7200, OLD_OPTIONS)


def test_a_stage_without_options_is_left_alone(before: Apps):
    stage = a_stage(before, gate_options={})

    after = migrated(AFTER).get_model("rollouts", "Stage").objects.get(pk=stage.pk)

    assert (after.timeout_s, after.gate_options) == (3600, {})
