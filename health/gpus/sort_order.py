"""Sorts the GPUs of a roster."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest, nsmallest
from itertools import chain, islice
from typing import Any

from gpu.versions import parse_version
from health.gpus.columns import COLUMNS
from health.gpus.faults import WELL
from health.gpus.gpu_filter import GpuFilter
from health.gpus.roster import Roster
from health.gpus.roster_cache import SeenNode
from health.sources.cluster_telemetry import ClusterTelemetry
from health.telemetry.base import AHEAD_S, FORGET_AFTER_S, STALE_AFTER_S
from health.telemetry.snapshot import NEVER

OF_NODE: Mapping[str, Callable[[SeenNode], Any]] = {  # by the key of a column; empty means unknown
    "node": lambda node: node.name,
    "product": lambda node: node.product,
    "driver": lambda node: parse_version(node.driver).numbers,
}
FEW = 8  # a part of a list that is as small is put in order without the rest


def ordered(
    roster: Roster, picked: Collection[int], wanted: GpuFilter, *, now: float, stop: int | None
) -> Sequence[int]:
    """Returns the sorted positions. Ties keep the roster's order, and unknown values come last in both directions."""
    key, is_descending = wanted.order_key, wanted.is_descending
    if key == "health":
        return _sort_by_health(roster, picked, worst_first=is_descending, stop=stop)
    if key in OF_NODE:
        of = {pk: OF_NODE[key](node) for pk, node in roster.nodes.items()}
        known = [at for at in picked if of[roster.node_of[at]]]
        unknown = [at for at in picked if not of[roster.node_of[at]]]
        return [*_sort_first(stop, known, lambda at: of[roster.node_of[at]], is_descending=is_descending), *unknown]
    return _sort_by_metric(roster, picked, key, now=now, is_descending=is_descending, stop=stop)


def _sort_first(
    stop: int | None, those: Collection[int], key: Callable[[int], Any], *, is_descending: bool
) -> list[int]:
    """Sorts only the first `stop`, or all. A page needs no more."""
    if stop is None or stop * FEW > len(those):
        return sorted(those, key=key, reverse=is_descending)
    return (nlargest if is_descending else nsmallest)(stop, those, key=key)


def _sort_by_health(roster: Roster, picked: Collection[int], *, worst_first: bool, stop: int | None) -> list[int]:
    """Sorts the few GPUs with findings, and adds as many others as are displayed."""
    nodes, node_of = roster.findings.nodes, roster.node_of
    on_them = ((at, roster.finding(at)) for at in picked if node_of[at] in nodes)
    ranks = {at: found.rank for at, found in on_them if found is not None}
    ill = sorted((at for at in ranks if ranks[at] != WELL), key=ranks.__getitem__, reverse=not worst_first)
    named = frozenset(ill)
    well = list(islice((at for at in picked if at not in named), stop))
    return ([*ill, *well] if worst_first else [*well, *ill])[:stop]


def _sort_by_metric(
    roster: Roster, picked: Collection[int], key: str, *, now: float, is_descending: bool, stop: int | None
) -> list[int]:
    """Sorts current values before outdated ones, and missing values last."""
    columns = {cluster: column_of(telemetry, key, now=now) for cluster, telemetry in roster.telemetry.items()}
    values = roster.of_boards(lambda telemetry: columns[telemetry.cluster][0])
    is_fresh = roster.of_boards(lambda telemetry: columns[telemetry.cluster][1])
    known = [at for at in picked if values[at] == values[at]]
    fresh = [at for at in known if is_fresh[at]]
    kept = [at for at in known if not is_fresh[at]] if len(fresh) < len(known) else []
    none = [at for at in picked if values[at] != values[at]] if len(known) < len(picked) else []
    if stop is not None and stop <= len(fresh):
        kept = none = []
    return [
        *chain(*(_sort_first(stop, some, values.__getitem__, is_descending=is_descending) for some in (fresh, kept))),
        *none,
    ]


def column_of(telemetry: ClusterTelemetry, key: str, *, now: float) -> tuple[Sequence[float], Sequence[bool]]:
    """Returns each board's sort value, NaN if missing, and whether it is current (see `read_metric`)."""
    oldest, newest = now - FORGET_AFTER_S, now + AHEAD_S
    least = math.inf if telemetry.standing.is_silent else now - STALE_AFTER_S
    if key == "sampled":
        times = telemetry.newest()
        return [at if oldest <= at <= newest else NEVER for at in times], [at >= least for at in times]
    found: Sequence[float] = ()
    is_fresh: Sequence[bool] = ()
    for metric in COLUMNS[key].metrics:
        values, times = telemetry.values(metric), telemetry.times(metric)
        said = values if _is_whole(values, times, oldest, newest) else [
            value if oldest <= at <= newest and value - value == 0 else NEVER  # finite
            for value, at in zip(values, times, strict=True)
        ]  # fmt: skip
        is_new = [at >= least for at in times]
        if found:  # the next metric fills in for boards without a value
            pairs = zip(found, is_fresh, said, is_new, strict=True)
            chosen = [
                (other, b) if one != one or (b and not a and other == other) else (one, a) for one, a, other, b in pairs
            ]
            found, is_fresh = [one for one, _ in chosen], [a for _, a in chosen]
        else:
            found, is_fresh = said, is_new
    return found, is_fresh


def _is_whole(values: Sequence[float], times: Sequence[float], oldest: float, newest: float) -> bool:
    """Returns whether every board has a valid value, in one check, since that is the usual case."""
    total = sum(values) + sum(times)
    return total - total == 0 and bool(times) and oldest <= min(times) and max(times) <= newest
