"""Variants of a costly test: the first in every run, all of them in `bin/test nightly` and by the test's path."""

from collections.abc import Iterable
from typing import Any

import pytest


def nightly_but_first(variants: Iterable[Any]) -> list[Any]:
    """Returns the values of one argument for `pytest.mark.parametrize`, with the mark `nightly` on all but the first.

    A tuple is one value. A `pytest.param` is refused: it has marks and an id of its own.
    """
    first, *others = variants
    if any(isinstance(one, pytest.ParameterSet) for one in (first, *others)):
        raise TypeError("nightly_but_first takes values, not pytest.param(…).")
    return [first, *(pytest.param(one, marks=pytest.mark.nightly) for one in others)]
