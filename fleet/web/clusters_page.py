"""The list of clusters, with instructions to add one."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.parts import part_response
from edges.requests import PersonRequest
from fleet.messages.numbers import numbers_of
from fleet.web.summary import lines_for
from people.rights import Permission, scope_of


def clusters(request: PersonRequest) -> HttpResponse:
    lines = lines_for(request, now=timezone.now())
    context = {
        "clusters": lines,
        "has_role": not scope_of(request.user, Permission.SEE).nowhere,
        "seq": numbers_of({line.cluster.pk: line.seq for line in lines}),
    }
    return render(request, "fleet/clusters/page.html", context)


@part_response
def cluster_list_part(request: PersonRequest) -> HttpResponse:
    return render(request, "fleet/clusters/_list.html", {"clusters": lines_for(request, now=timezone.now())})
