"""The matrix of a pool's nodes and GPUs by tenant, on its page, and its CSV file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from capacity.placements.tenant_matrix import (
    GpuHolding,
    MatrixGpu,
    MatrixNode,
    TenantMatrix,
    every_node,
    is_read,
    tenant_matrix,
)
from capacity.web.csv_files import known_rows
from edges.csv_text import download_of
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Pool

COLOURS = 6  # of the tenants with the most GPUs; the others share one
CELL, GAP, LABEL = 16, 2, 170  # of the drawing
STATES: Mapping[GpuHolding, str] = {
    GpuHolding.FREE: "free",
    GpuHolding.CLOSED: "free, on a node that is not ready or cordoned",
    GpuHolding.UNKNOWN: "unknown: a pod of the node has GPUs, and no source tells which",
}
HEAD = ("node", "gpu", "uuid", "state", "namespaces", "pods")


@dataclass(frozen=True)
class CellPart:
    look: str
    x: float
    width: float
    title: str


@dataclass(frozen=True)
class MatrixRow:
    node: MatrixNode
    y: int
    parts: list[CellPart]


@part_response
def pool_tenants_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster__observer"), pk=pool_id)
    matrix = tenant_matrix(pool, request.user, now=timezone.now())
    context: dict[str, Any] = {"pool": pool, "matrix": matrix}
    return render(request, "capacity/placements/_tenants.html", {**context, **(_drawing(matrix) if matrix else {})})


def csv_file(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)
    nodes = every_node(pool, request.user, now=timezone.now()) if is_read(pool) else None
    rows = known_rows(nodes, (row for node in nodes or () for row in _csv_rows(node)))
    return download_of([HEAD, *rows], f"tenants-of-pool-{pool.pk}.csv")


def _csv_rows(node: MatrixNode) -> Iterator[tuple[object, ...]]:
    for gpu in node.gpus:
        index = "" if gpu.index is None else gpu.index
        yield node.name, index, gpu.uuid, gpu.state.value, " ".join(gpu.tenants), " ".join(gpu.pods)


def _drawing(matrix: TenantMatrix) -> dict[str, Any]:
    looks = {name: f"t-{place + 1}" for place, (name, _) in enumerate(matrix.tenants[:COLOURS])}
    rows = [
        MatrixRow(node, place * (CELL + GAP), [part for column, gpu in enumerate(node.gpus) for part in
                                                _cell_parts(gpu, column, looks)])
        for place, node in enumerate(matrix.nodes)
    ]  # fmt: skip
    return {
        "rows": rows,
        "columns": range(max((len(node.gpus) for node in matrix.nodes), default=0)),
        "wide": LABEL + max((len(node.gpus) for node in matrix.nodes), default=0) * (CELL + GAP),
        "tall": len(rows) * (CELL + GAP),
        "cell": CELL,
        "keys": [(looks[name], name, number) for name, number in matrix.tenants[:COLOURS]],
        "others": sum(number for _, number in matrix.tenants[COLOURS:]),
        "lines": [(node, *map(node.number, STATES)) for node in matrix.nodes],
    }


def _cell_parts(gpu: MatrixGpu, column: int, looks: Mapping[str, str]) -> Iterator[CellPart]:
    """Yields the parts of a cell: one for each tenant of a shared GPU."""
    x = LABEL + column * (CELL + GAP)
    name = f"GPU {gpu.index}" if gpu.index is not None else gpu.uuid
    if not gpu.tenants:
        yield CellPart(f"t-{gpu.state}", x, CELL, f"{name}: {STATES[gpu.state]}")
        return
    width = CELL / len(gpu.tenants)
    for place, tenant in enumerate(gpu.tenants):
        yield CellPart(looks.get(tenant, "t-others"), x + place * width, width, f"{name}: {tenant}")
