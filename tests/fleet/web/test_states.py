"""What a page calls a node of which findings are open, and by which shape."""

import pytest

from fleet.web.states import state_of
from tests.make import a_cluster, a_node

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("given", "glyph", "word"),
    [
        ({"unresolved": 2}, "warn", "2 findings"),
        ({"unresolved": 1, "critical": 1}, "bad", "1 critical finding"),
        ({"unresolved": 2, "critical": 2}, "bad", "2 critical findings"),
        ({"unresolved": 3, "critical": 1}, "bad", "3 findings, 1 critical"),
        ({"unresolved": 1, "gpu_allocatable": 7}, "warn", "1 of 8 GPUs missing"),
        ({"unresolved": 1, "critical": 1, "gpu_allocatable": 7}, "bad", "1 of 8 GPUs missing, 1 critical finding"),
        ({"unresolved": 1, "critical": 1, "upgrade_state": "drain-required"}, "changing", "draining"),
        ({"unresolved": 1, "critical": 1, "is_ready": False}, "bad", "not ready"),
    ],
)
def test_a_critical_finding_is_named_where_nothing_worse_is(given, glyph, word):
    state = state_of(a_node(a_cluster(), **given))

    assert (state.glyph, state.word) == (glyph, word)
