"""What the bench of crashes takes away is there to be taken: that it is then found out, the flows try."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from benchmarks.crashing.plants import PLANTS, planted

ANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@pytest.mark.parametrize("plant", PLANTS)
def test_the_guard_has_the_name_by_which_it_is_taken_away(plant: str):
    with planted(plant):
        pass


def parameters(of: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(of).parameters)


@pytest.mark.parametrize("plant", PLANTS)
def test_what_stands_in_its_place_takes_what_the_guard_takes(plant: str):
    """An eviction without its UID took no dry run: each ended in a TypeError, and no schedule found anything."""
    for patch in PLANTS[plant].patches:
        patched = patch()
        with patched:
            guard, stands = (getattr(patched, name, None) for name in ("temp_original", "new"))
        if not (inspect.isfunction(guard) and inspect.isfunction(stands)):
            continue
        taken = parameters(stands)
        if not any(each.kind in ANY for each in taken.values()):
            named = {name for name, each in parameters(guard).items() if each.kind is each.KEYWORD_ONLY}
            assert named <= set(taken), f"{stands.__name__} lacks {named - set(taken)}"
            assert len(parameters(guard)) <= len(taken)
