from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from edges.rest import Flat


@dataclass(frozen=True)
class Found:
    row: Any
    secret: str | None

    @property
    def sum(self) -> int:
        return self.row.one + self.row.two

    @property
    def broken(self) -> int:
        return self.row.not_there


def flat() -> Any:
    row = SimpleNamespace(one=1, two=2, secret="only for some", broken=7)
    return Flat(Found(row, secret=None), row)


def test_a_row_and_what_was_found_are_read_as_one():
    assert (flat().one, flat().sum) == (1, 3)


def test_what_was_found_is_said_also_where_that_is_nothing():
    assert flat().secret is None


def test_what_cannot_be_found_is_not_taken_from_the_row():
    with pytest.raises(AttributeError, match="not_there"):
        _ = flat().broken


def test_nothing_is_hung_on_it():
    with pytest.raises(AttributeError):
        flat().one = 2
