"""Boards go to virtual machines and come back; they are offered under another name meanwhile, and none is lost."""

from hypothesis import given
from hypothesis import strategies as st

from gpu.resources import expect
from gpu.resources.expected_counts import Since

GPU, VFIO = "gpu.nvidia.com", "gpu.nvidia.com/vfio"


def look(before: dict[str, int], there: dict[str, int], *, first: bool = False) -> dict[str, int]:
    return expect(before, there, there, {}, since=Since.FIRST if first else Since.SAME)


@given(st.integers(1, 16), st.lists(st.integers(0, 16), min_size=1, max_size=8))
def test_a_board_that_moves_is_not_missing(boards, moves):
    expected: dict[str, int] = {}
    for step, move in enumerate(moves):
        there = {VFIO: min(move, boards), GPU: boards - min(move, boards)}
        there = {name: number for name, number in there.items() if number}
        expected = look(expected, there, first=not step)

        assert {name: number for name, number in expected.items() if number} == there


def test_a_board_that_comes_back_to_no_name_is_missing():
    expected = look(look({}, {GPU: 8}, first=True), {GPU: 6, VFIO: 2})

    assert look(expected, {GPU: 6, VFIO: 1}) == {GPU: 7, VFIO: 1}
    assert look(expected, {GPU: 5, VFIO: 2}) == {GPU: 6, VFIO: 2}
