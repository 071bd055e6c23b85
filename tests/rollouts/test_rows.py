"""Rows that tests of plans save once per process."""

import pytest
from django.db import connection, transaction

from tests.rollouts.rows import a_started_plan
from tests.saved_rows import rows


def test_a_started_plan_is_put_back_on_the_same_rows_and_built_anew_on_others(cluster, owner):
    if connection.vendor != "postgresql":
        pytest.skip("On SQLite every plan is built.")

    def started():
        with transaction.atomic():
            plan = a_started_plan(cluster, owner)
            found = rows()
            transaction.set_rollback(True)
        return plan.pk, found

    first, second = started(), started()
    cluster.nodes.filter(name="node-0").update(is_unschedulable=True)
    third = started()

    assert first == second
    assert third[0] != first[0]
