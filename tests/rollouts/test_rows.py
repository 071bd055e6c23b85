"""Rows that tests of plans save once per process."""

import pytest
from django.db import connection, transaction

from fleet.models import Cluster
from people.models import User
from tests import saved_rows
from tests.rollouts.rows import a_started_plan
from tests.saved_rows import rows

pytestmark = pytest.mark.skipif(connection.vendor != "postgresql", reason="On SQLite every plan is built.")


@pytest.fixture(autouse=True)
def _no_plans(monkeypatch):
    """Takes out what other tests of this process saved, perhaps on other rows: the first plan of a name is kept."""
    lasting = {name: saved for name, saved in saved_rows._saved.items() if saved.model in (Cluster, User)}
    monkeypatch.setattr(saved_rows, "_saved", lasting)


def started(cluster, owner):
    with transaction.atomic():
        plan = a_started_plan(cluster, owner)
        found = rows()
        transaction.set_rollback(True)
    return plan.pk, found


def test_a_started_plan_is_put_back_on_the_same_rows_and_built_anew_on_others(cluster, owner):
    first, second = started(cluster, owner), started(cluster, owner)
    cluster.nodes.filter(name="node-0").update(is_unschedulable=True)
    third = started(cluster, owner)

    assert first == second
    assert third[0] != first[0]


def test_a_test_with_settings_of_its_own_gets_no_plan_that_was_built_without_them(cluster, owner, settings):
    without, _ = started(cluster, owner)
    settings.TELEMETRY_LOOPBACK = True

    assert started(cluster, owner)[0] != without
