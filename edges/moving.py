"""How the state of a row changes, in every app: by its table, and by a guarded update."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django.db import models

from edges.moves import IllegalMove, LostRace

Moves = Mapping[Any, frozenset[Any]]


def write_move(row: models.Model, moves: Moves, was: StrEnum, to: StrEnum, **columns: Any) -> None:
    """Write `to` into the row's `state`, and the other columns with it. The row that is given is left as it is.

    :raises IllegalMove: if the table does not allow it
    :raises LostRace: if the row is no longer in the state we read
    """
    kind = row._meta.model_name  # noqa: SLF001 - Django's own public name
    if to not in moves[was]:
        raise IllegalMove(f"A {kind}", was, to)
    same = type(row)._default_manager.filter(pk=row.pk, state=was)  # noqa: SLF001 - Django's own public name
    if not same.update(state=to, **columns):
        raise LostRace(f"The {kind} is no longer {was}.")
