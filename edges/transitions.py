"""State changes of rows in every app: a transition table and a guarded update."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from django.db import models

from edges.transition_errors import IllegalMove, LostRace

AT_ONCE = 1000  # rows per statement
Moves = Mapping[Any, frozenset[Any]]


def write_move(row: models.Model, moves: Moves, was: StrEnum, to: StrEnum, **columns: Any) -> None:
    """Writes `to` into the row's `state`, together with other columns. Leaves the given instance unchanged.

    :raises IllegalMove: if the table does not allow the move
    :raises LostRace: if the row is no longer in the state that was read
    """
    kind = row._meta.model_name  # noqa: SLF001 - Django's own public name
    if to not in moves[was]:
        raise IllegalMove(f"A {kind}", was, to)
    same = type(row)._default_manager.filter(pk=row.pk, state=was)  # noqa: SLF001 - Django's own public name
    if not same.update(state=to, **columns):
        raise LostRace(f"The {kind} is no longer {was}.")


def write_moves(rows: Sequence[models.Model], moves: Moves, to: StrEnum, **columns: Any) -> None:
    """Writes the same state into many rows of one model, a thousand rows per statement.

    Call it in a transaction: earlier statements must be rolled back when a later one loses its race.

    :raises IllegalMove: if the table does not allow a move
    :raises LostRace: if a row is no longer in the state that was read
    """
    keys: dict[StrEnum, list[Any]] = defaultdict(list)
    for row in rows:
        keys[type(to)(row.state)].append(row.pk)  # type: ignore[attr-defined]
    for was, state_keys in keys.items():
        kind = rows[0]._meta.model_name  # noqa: SLF001 - Django's own public name
        if to not in moves[was]:
            raise IllegalMove(f"A {kind}", was, to)
        for first in range(0, len(state_keys), AT_ONCE):
            batch = state_keys[first : first + AT_ONCE]
            same = type(rows[0])._default_manager.filter(pk__in=batch, state=was)  # noqa: SLF001 - Django's own
            if same.update(state=to, **columns) != len(batch):
                raise LostRace(f"A {kind} is no longer {was}.")
