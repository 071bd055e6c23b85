"""A worker that ran rounds for months is as large as after a few (the ninth of ten mistakes, docs/hazards.md)."""

import gc
import tracemalloc

import pytest

from tests.rollouts.engine.ground import Ground
from tests.rooms import PRODUCT, ROOT

pytestmark = [pytest.mark.rounds, pytest.mark.nightly]
SOME, MORE = 15, 60  # rounds: until all is imported and remembered that will be, and on from there
A_ROUND = 128  # bytes that may stay of each; of one whose decision stayed it was 1,200
OURS = [tracemalloc.Filter(inclusive=True, filename_pattern=f"{ROOT}/{room}/*") for room in PRODUCT]


def kept() -> int:
    """Bytes that code of ours allocated and still has, in all threads."""
    gc.collect()
    return sum(each.size for each in tracemalloc.take_snapshot().filter_traces(OURS).statistics("filename"))


def test_rounds_leave_nothing_in_the_memory_of_their_worker(ground: Ground):
    ground.armed()
    tracemalloc.start(1)
    try:
        ground.rounds(SOME)
        before = kept()

        ground.rounds(MORE)

        assert kept() - before < MORE * A_ROUND
    finally:
        tracemalloc.stop()
