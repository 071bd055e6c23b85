"""What the bench of crashes takes away is there to be taken: that it is then found out, the flows try."""

import pytest

from benchmarks.crashing.plants import PLANTS, planted


@pytest.mark.parametrize("plant", PLANTS)
def test_the_guard_has_the_name_by_which_it_is_taken_away(plant: str):
    with planted(plant):
        pass
