"""The parts of the pages of a node and of a GPU with the results of their test Jobs."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import Http404, HttpResponse
from django.shortcuts import render

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.queries import gpu_at
from fleet.web.node_lookup import node_for
from rollouts.queries.test_results import SHOWN, ResultSeries, results_of, series_of
from rollouts.web.gate_plots import DrawnPlot, draw


@dataclass(frozen=True)
class DrawnSeries:
    series: ResultSeries
    drawn: DrawnPlot


def _drawn(series: Sequence[ResultSeries]) -> list[DrawnSeries]:
    return [DrawnSeries(each, draw(each)) for each in series]


@part_response
def node_test_results_part(request: PersonRequest, node_id: int) -> HttpResponse:
    node = node_for(request, node_id)
    shown = {"node": node, "results": results_of(node)[:SHOWN], "plots": _drawn(series_of(node))}
    return render(request, "rollouts/parts/_test_results.html", shown)


@part_response
def gpu_test_results_part(request: PersonRequest, node_id: int, index: int) -> HttpResponse:
    gpu = gpu_at(node_id, index, user=request.user)
    if gpu is None:
        raise Http404
    series = series_of(gpu.node, gpu_uuid=gpu.uuid) if gpu.uuid else []
    return render(request, "rollouts/parts/_gpu_test_results.html", {"gpu": gpu, "plots": _drawn(series)})
