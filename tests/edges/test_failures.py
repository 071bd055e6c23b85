"""A round that failed says whether the database was out or Quarterdeck is wrong."""

import pytest
from django.db import IntegrityError, InterfaceError, OperationalError

from edges.failures import failure_sentence


@pytest.mark.parametrize("outage", [OperationalError("database is locked"), InterfaceError("connection is closed")])
def test_a_database_that_is_out_is_no_bug(outage: Exception):
    said = failure_sentence(outage)

    assert "Quarterdeck" not in said
    assert "database" in said


@pytest.mark.parametrize("bug", [KeyError("x"), IntegrityError("UNIQUE constraint failed")])
def test_a_bug_is_named_by_its_kind(bug: Exception):
    assert failure_sentence(bug) == f"Quarterdeck failed with a bug: {type(bug).__name__}."
