"""The limit on waiting for locks (Z40)."""

import pytest
from django.db import connection

from edges.locks import LOCK_WAIT, wait_for_locks

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one lock and its own timeout"),
]


def limit() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SHOW lock_timeout")
        return cursor.fetchone()[0]


def test_the_limit_outlasts_another_inside_of_it():
    before = limit()

    with wait_for_locks():
        with wait_for_locks(LOCK_WAIT / 4):
            assert limit() == "100ms"
        assert limit() == "400ms"

    assert limit() == before
