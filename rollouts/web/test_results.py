"""The part of a node's page with the results of its test Jobs."""

from django.http import HttpResponse
from django.shortcuts import render

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.web.node_lookup import node_for
from rollouts.queries.test_results import SHOWN, results_of


@part_response
def node_test_results_part(request: PersonRequest, node_id: int) -> HttpResponse:
    node = node_for(request, node_id)
    return render(request, "rollouts/parts/_test_results.html", {"node": node, "results": results_of(node)[:SHOWN]})
