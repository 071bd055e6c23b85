"""How the state of a row changes, in every app: by its table, and by a guarded update."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

from django.db import models

from edges.transition_errors import IllegalMove, LostRace

AT_ONCE = 1000  # rows a statement
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


def write_moves(rows: Sequence[models.Model], moves: Moves, to: StrEnum, **columns: Any) -> None:
    """As `write_move`, of many rows of one model: a statement for a thousand of each state that they are in.

    In a transaction: what was written before a race was lost must not be kept.

    :raises IllegalMove, LostRace: of any of them
    """
    keys: dict[StrEnum, list[Any]] = defaultdict(list)
    for row in rows:
        keys[type(to)(row.state)].append(row.pk)  # type: ignore[attr-defined]
    for was, its in keys.items():
        kind = rows[0]._meta.model_name  # noqa: SLF001 - Django's own public name
        if to not in moves[was]:
            raise IllegalMove(f"A {kind}", was, to)
        for first in range(0, len(its), AT_ONCE):
            those = its[first : first + AT_ONCE]
            same = type(rows[0])._default_manager.filter(pk__in=those, state=was)  # noqa: SLF001 - Django's own
            if same.update(state=to, **columns) != len(those):
                raise LostRace(f"A {kind} is no longer {was}.")
