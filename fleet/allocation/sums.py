"""The aggregation of nodes into counter rows: one statement for a few nodes or a whole cluster, and its writes.

`fleet.allocation.counters` decides when it runs.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from operator import itemgetter
from typing import Any

from django.db import connection
from django.db.models import Count, F, Func, Model, Q, Sum, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from fleet.allocation.amounts import AMOUNT_SUMS
from fleet.allocation.cpu_memory import ALLOCATABLE, REQUESTED
from fleet.models import Node, NodeSums, SegmentSums
from fleet.models.sums import AddedUp, Sums
from gpu.resources.physical import COLUMNS as USE_COLUMNS

MARK = "sum_of_"  # an aggregate may not have a column's name
OF_NODES: dict[str, Any] = {
    "nodes": Count("pk"),
    "ready": Count("pk", filter=Q(is_ready=True)),
    "not_ready": Count("pk", filter=Q(is_ready=False)),
    "readiness_unknown": Count("pk", filter=Q(is_ready=None)),
    "unschedulable": Count("pk", filter=Q(is_unschedulable=True)),
    "held": Count("pk", filter=Q(is_held=True)),
    "gpus_named": Count("gpu_expected"),
    "gpus_named_now": Count("gpu_allocatable"),
    "uncounted": Count("pk", filter=Q(physical_gpus=None)),
    **{column: Sum(column) for column in USE_COLUMNS.values()},
    **AMOUNT_SUMS,
    "cpu_named": Count("cpu_allocatable_m"),
    "memory_named": Count("memory_allocatable_bytes"),
    "silent": Count("pk", filter=Q(cpu_allocatable_m=None) | Q(memory_allocatable_bytes=None)),
    **{column: Coalesce(Sum(column), 0) for column in (*ALLOCATABLE, *REQUESTED)},
}
NAMES = tuple(OF_NODES)
TABLES: tuple[type[Sums], ...] = (NodeSums, SegmentSums)
# Columns that are equal for all nodes of one row, per table.
ALIKE = tuple(dict.fromkeys(column for table in TABLES for column in table.alike))
CLUSTER, NODES = -1, "the keys of nodes"  # placeholders in the statement

SumsKey = tuple[Any, ...]
CountedSums = dict[type[Sums], dict[SumsKey, Counter[str]]]  # by table and row


class PoolKeys(Func):
    """The keys of a node's pools in order: 3,17. Blank: no pool."""

    output_field = TextField()
    ordered = "SELECT pool_id FROM fleet_node_pools WHERE node_id = %(expressions)s ORDER BY pool_id"

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        template = f"COALESCE((SELECT group_concat(pool_id, ',') FROM ({self.ordered})), '')"  # noqa: S608 - ours
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        template = f"COALESCE((SELECT string_agg(pool_id::text, ',') FROM ({self.ordered}) AS ordered), '')"  # noqa: S608 - ours
        return self.as_sql(compiler, connection, template=template, **extra)


def computed_counters(cluster_id: int, nodes: Iterable[int] | None = None) -> CountedSums:
    """Counts nodes as they are; None: all of the cluster. One query."""
    statement, params = _counting(is_whole=nodes is None)
    given: dict[Any, Any] = {CLUSTER: cluster_id, NODES: json.dumps(sorted(nodes or ()))}
    with connection.cursor() as cursor:
        cursor.execute(statement, [given.get(each, each) for each in params])
        rows = [_convert_row(row) for row in cursor.fetchall()]
    return {table: _rows_of(table, rows) for table in TABLES}


def _rows_of(table: type[Sums], rows: Iterable[dict[str, Any]]) -> dict[SumsKey, Counter[str]]:
    key_of, names = itemgetter(*table.alike), table.added_up()
    found: dict[SumsKey, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row["is_gpu_node"] or not table.is_of_gpu_nodes:
            sums = found[key_of(row)]
            for name in names:
                sums[name] += row[MARK + name]
    return dict(found)


def _convert_row(row: tuple[Any, ...]) -> dict[str, Any]:
    """Converts a row: SQLite's driver has no booleans, and PostgreSQL's large sums are decimals."""
    found = dict(zip((*ALIKE, *(MARK + name for name in NAMES)), row, strict=True))
    said = {name: bool(found[name]) for name in ALIKE if name.startswith("is_")}
    return found | said | {name: int(number) for name, number in found.items() if name.startswith(MARK)}


def stored_counters(cluster_id: int) -> CountedSums:
    """Returns the stored counters. One query per table."""
    return {table: _stored_sums(table, cluster_id) for table in TABLES}


def _stored_sums(table: type[Sums], cluster_id: int) -> dict[SumsKey, Counter[str]]:
    alike, names = table.alike, table.added_up()
    rows = table.objects.filter(cluster=cluster_id).values_list(*alike, *names)
    return {row[: len(alike)]: Counter(dict(zip(names, row[len(alike) :], strict=True))) for row in rows}


@cache
def _counting(*, is_whole: bool) -> tuple[str, tuple[Any, ...]]:
    """Builds the statement once, since Django takes longer to compile it than a database to run it."""
    nodes = Node.objects.filter(cluster_id=CLUSTER).order_by()
    if not is_whole:
        nodes = nodes.filter(pk__in=RawSQL(_keys_in_json(), [NODES]))  # noqa: S611 - ours
    alike = nodes.annotate(pool_keys=PoolKeys(F("pk")), is_driver_reported=Q(driver_unknown_since=None)).values_list(
        *("pool_keys" if name == "pools" else name for name in ALIKE)
    )
    return alike.annotate(**{MARK + name: each for name, each in OF_NODES.items()}).query.sql_with_params()


def _keys_in_json() -> str:
    if connection.vendor == "sqlite":
        return "SELECT value FROM json_each(%s)"
    return "SELECT value::bigint FROM json_array_elements_text(%s::json)"


def add(cluster_id: int, before: CountedSums, after: CountedSums) -> None:
    """Applies the difference. One query per changed table, and one more where rows become empty."""
    for table in TABLES:
        _add(table, cluster_id, before.get(table, {}), after.get(table, {}))


def _add(
    table: type[Sums], cluster_id: int, before: dict[SumsKey, Counter[str]], after: dict[SumsKey, Counter[str]]
) -> None:
    differences, names = [], table.added_up()
    for key in {*before, *after}:
        was, now = before.get(key, Counter()), after.get(key, Counter())
        if was != now:
            differences.append((*key, *(now[name] - was[name] for name in names)))
    if not differences:
        return
    with connection.cursor() as cursor:
        cursor.executemany(addition_to(table), sorted(differences))
    if before.keys() - after.keys():
        table.objects.filter(cluster=cluster_id, nodes__lte=0).delete()


@cache
def addition_to(model: type[AddedUp]) -> str:
    """Returns the statement that adds a row of `model.alike` and `model.added_up()` to the row that is alike."""
    quote = connection.ops.quote_name
    table = quote(model._meta.db_table)  # noqa: SLF001 - documented, in spite of its name
    alike, sums = ([quote(_column(model, name)) for name in names] for names in (model.alike, model.added_up()))
    values = ", ".join(["%s"] * (len(alike) + len(sums)))
    adding = ", ".join(f"{name} = {table}.{name} + EXCLUDED.{name}" for name in sums)
    return (
        f"INSERT INTO {table} ({', '.join(alike + sums)}) VALUES ({values}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(alike)}) DO UPDATE SET {adding}"
    )


def _column(model: type[Model], name: str) -> str:
    field: Any = model._meta.get_field(name)  # noqa: SLF001 - documented, in spite of its name
    return str(field.column)
