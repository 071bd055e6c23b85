"""The cards of free GPUs on the pages of a pool and of a cluster."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from capacity.free_gpus.free_gpu_report import FreeGpuReport, free_gpus_of_cluster, free_gpus_of_pool
from capacity.free_gpus.mig_demand_report import mig_demand_of_pool
from capacity.free_gpus.stranded_gpus import StrandedBy
from capacity.wait_reasons.amounts import amount_text
from capacity.wait_reasons.obstacles import CPU, MEMORY
from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.models import Cluster, Pool

# Title, and what frees these GPUs.
CAUSES: dict[StrandedBy, tuple[str, str]] = {
    StrandedBy.NOT_READY: ("Node not ready", "Repair the node."),
    StrandedBy.CORDON: ("Node cordoned", "Uncordon the node once its work is done."),
    StrandedBy.TAINT: ("Taint that no GPU pod tolerates", "Remove the taint, or add a toleration to the pods."),
    StrandedBy.CPU: ("Too little CPU", "Move pods without GPUs away, or request less CPU for each GPU."),
    StrandedBy.MEMORY: ("Too little memory", "Move pods without GPUs away, or request less memory for each GPU."),
    StrandedBy.PROFILE: ("MIG profile that no pod requests", "Choose another MIG layout."),
    StrandedBy.LEFTOVER: ("Fewer than the usual request on a node", "Pack small pods on fewer nodes."),
}


@dataclass(frozen=True)
class FreeGpuPart:
    key: str  # usable, or a cause
    title: str
    gpus: float
    nodes: int | None
    step: str = ""
    start: float = 0.0  # in percent of the bar


@part_response
def pool_free_gpus_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)
    context = _context(free_gpus_of_pool(pool, request.user))
    return render(request, "capacity/free_gpus/_pool.html", {"pool": pool, **context})


@part_response
def cluster_free_gpus_part(request: PersonRequest, cluster_id: int) -> HttpResponse:
    cluster = get_object_or_404(Cluster.objects.visible_to(request.user), pk=cluster_id)
    context = _context(free_gpus_of_cluster(cluster, request.user))
    return render(request, "capacity/free_gpus/_cluster.html", {"cluster": cluster, **context})


@part_response
def pool_mig_demand_part(request: PersonRequest, pool_id: int) -> HttpResponse:
    pool = get_object_or_404(Pool.objects.visible_to(request.user).select_related("cluster"), pk=pool_id)
    report = mig_demand_of_pool(pool, request.user, now=timezone.now())
    products = [
        (each.demand, *(percent_of(part, 1.0) for part in each.shares), each)
        for each in (report.changes.values() if report else ())
    ]
    return render(
        request, "capacity/free_gpus/_mig_demand.html", {"pool": pool, "report": report, "products": products}
    )


def percent_of(part_of: float, total: float) -> int:
    """Returns the percentage, rounded down: 100 means all."""
    return int(100 * part_of / total + 1e-9) if total else 0


def _context(report: FreeGpuReport | None) -> dict[str, Any]:
    if report is None:
        return {"report": None}
    found = report.found
    return {
        "report": report,
        "found": found,
        "parts": _parts_of_report(report),
        "usual_request": " and ".join(
            amount_text(name, amount)
            for name, amount in ((CPU, found.usual.cpu_m), (MEMORY, found.usual.memory_bytes))
            if amount
        ),
        "sizes": [(size, number, size * number) for size, number in found.pods.items()],
    }


def _parts_of_report(report: FreeGpuReport) -> list[FreeGpuPart]:
    found, reached = [], 0.0
    lines: list[tuple[str, str, float, int | None, str]] = [("usable", "Usable now", report.found.usable, None, "")]
    lines += [(cause, CAUSES[cause][0], gpus, nodes, CAUSES[cause][1]) for cause, gpus, nodes in report.found.parts]
    for key, title, gpus, nodes, step in lines:
        found.append(FreeGpuPart(key, title, gpus, nodes, step, reached))
        reached += 100 * gpus / report.found.free if report.found.free else 0.0
    return found
