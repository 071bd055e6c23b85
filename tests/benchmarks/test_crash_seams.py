"""Which seam a schedule cuts."""

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.crashing.plays import Moment
from benchmarks.crashing.runner import seam_in_turn


def a_round(seams: int, gaps: set[int]) -> Moment:
    return Moment(None, seams, tuple(sorted(gaps)), 0, (), None, None)


rounds = st.integers(0, 12).flatmap(
    lambda seams: st.builds(a_round, st.just(seams), st.sets(st.integers(1, seams)) if seams else st.just(set()))
)
lives = st.lists(rounds, min_size=1, max_size=6).map(tuple).filter(lambda life: any(one.seams for one in life))


@given(life=lives, seed=st.integers(0, 10**9))
def test_each_has_its_turn_once_before_any_has_another_and_the_gaps_come_first(life, seed):
    seams = {(at, seam) for at, one in enumerate(life) for seam in range(1, one.seams + 1)}
    gaps = {(at, gap) for at, one in enumerate(life) for gap in one.gaps}

    turns = [seam_in_turn(life, turn, seed) for turn in range(2 * len(seams))]

    assert set(turns[: len(gaps)]) == gaps
    assert set(turns[: len(seams)]) == set(turns[len(seams) :]) == seams
