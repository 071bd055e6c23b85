"""Variants of a costly test: the first in every run, all of them in `bin/test nightly` and by the test's path."""

from collections.abc import Iterable
from typing import Any

import pytest


def nightly_but_first(variants: Iterable[Any]) -> list[Any]:
    """Returns the parameters of `pytest.mark.parametrize` with the mark `nightly` on all but the first."""
    first, *others = variants
    return [first, *(pytest.param(*_values(one), marks=pytest.mark.nightly) for one in others)]


def _values(one: Any) -> tuple[Any, ...]:
    return one if isinstance(one, tuple) else (one,)
