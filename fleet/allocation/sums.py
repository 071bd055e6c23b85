"""What is counted of nodes that are alike, by one statement for a few and for a whole cluster, and how it is written.

`fleet.allocation.kept` says when.
"""

import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Count, F, Func, Q, Sum, TextField
from django.db.models.expressions import RawSQL
from django.db.models.functions import Coalesce

from fleet.allocation.amounts import AMOUNT_SUMS
from fleet.allocation.cpu_memory import ALLOCATABLE, REQUESTED
from fleet.models import Node, NodeSums
from fleet.models.node_sums import ALIKE
from gpu.resources.physical import COLUMNS as USE_COLUMNS

MARK = "sum_of_"  # an aggregate may not be named as a column
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
CLUSTER, NODES = -1, "the keys of nodes"  # stand in the statement for what is asked

Key = tuple[Any, ...]
Counted = dict[Key, Counter[str]]


class PoolKeys(Func):
    """The keys of a node's pools, in their order: 3,17. Blank: it is in none."""

    output_field = TextField()
    ordered = "SELECT pool_id FROM fleet_node_pools WHERE node_id = %(expressions)s ORDER BY pool_id"

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        template = f"COALESCE((SELECT group_concat(pool_id, ',') FROM ({self.ordered})), '')"  # noqa: S608 - ours
        return self.as_sql(compiler, connection, template=template, **extra)

    def as_postgresql(self, compiler: Any, connection: Any, **extra: Any) -> tuple[str, Any]:
        template = f"COALESCE((SELECT string_agg(pool_id::text, ',') FROM ({self.ordered}) AS ordered), '')"  # noqa: S608 - ours
        return self.as_sql(compiler, connection, template=template, **extra)


def counted(cluster_id: int, nodes: Iterable[int] | None = None) -> Counted:
    """As the nodes are; None: all of the cluster. One query."""
    statement, params = _counting(is_whole=nodes is None)
    given: dict[Any, Any] = {CLUSTER: cluster_id, NODES: json.dumps(sorted(nodes or ()))}
    with connection.cursor() as cursor:
        cursor.execute(statement, [given.get(each, each) for each in params])
        rows = cursor.fetchall()
    return {_key(row): Counter(dict(zip(NAMES, map(int, row[len(ALIKE) :]), strict=True))) for row in rows}


def written(cluster_id: int) -> Counted:
    """As the sums say. One query."""
    rows = NodeSums.objects.filter(cluster=cluster_id).values_list(*ALIKE, *NAMES)
    return {_key(row): Counter(dict(zip(NAMES, row[len(ALIKE) :], strict=True))) for row in rows}


def _key(row: tuple[Any, ...]) -> Key:
    """SQLite's driver has no booleans."""
    return tuple(bool(value) if name.startswith("is_") else value for name, value in zip(ALIKE, row, strict=False))


@cache
def _counting(*, is_whole: bool) -> tuple[str, tuple[Any, ...]]:
    """Django takes longer to write it than a database to answer."""
    nodes = Node.objects.filter(cluster_id=CLUSTER).order_by()
    if not is_whole:
        nodes = nodes.filter(pk__in=RawSQL(_keys_in_json(), [NODES]))  # noqa: S611 - ours
    alike = nodes.annotate(pool_keys=PoolKeys(F("pk")), is_driver_said=Q(driver_unknown_since=None)).values_list(
        "cluster", "pool_keys", *ALIKE[2:]
    )
    return alike.annotate(**{MARK + name: each for name, each in OF_NODES.items()}).query.sql_with_params()


def _keys_in_json() -> str:
    if connection.vendor == "sqlite":
        return "SELECT value FROM json_each(%s)"
    return "SELECT value::bigint FROM json_array_elements_text(%s::json)"


def add(cluster_id: int, before: Counted, after: Counted) -> None:
    differences = []
    for key in {*before, *after}:
        was, now = before.get(key, Counter()), after.get(key, Counter())
        if was != now:
            differences.append((*key, *(now[name] - was[name] for name in NAMES)))
    if not differences:
        return
    with connection.cursor() as cursor:
        cursor.executemany(_adding(), sorted(differences))
    if len(after) < len(before) or {*before} - {*after}:
        NodeSums.objects.filter(cluster=cluster_id, nodes__lte=0).delete()


def _column(name: str) -> str:
    field: Any = NodeSums._meta.get_field(name)  # noqa: SLF001 - documented, in spite of its name
    return str(field.column)


@cache
def _adding() -> str:
    quote = connection.ops.quote_name
    table = quote(NodeSums._meta.db_table)  # noqa: SLF001 - documented, in spite of its name
    alike = [quote(_column(name)) for name in ALIKE]
    sums = [quote(name) for name in NAMES]
    values = ", ".join(["%s"] * (len(alike) + len(sums)))
    adding = ", ".join(f"{name} = {table}.{name} + EXCLUDED.{name}" for name in sums)
    return (
        f"INSERT INTO {table} ({', '.join(alike + sums)}) VALUES ({values}) "  # noqa: S608
        f"ON CONFLICT ({', '.join(alike)}) DO UPDATE SET {adding}"
    )
