"""The forms that save and delete a view, for the pages of all tables."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from edges.kept_input import keep_input, pop_kept_input
from edges.requests import PersonRequest
from health.saved_views import BadView, ViewTable


def context_of(request: PersonRequest, table: ViewTable) -> dict[str, Any]:
    """Returns the views of the user, and the name that was refused last, for the template."""
    return {"views": table.of(request.user), "written": pop_kept_input(request, _input_key(table))}


def save_view(request: PersonRequest, table: ViewTable) -> HttpResponse:
    name, query = request.POST.get("name", ""), request.POST.get("query", "")
    try:
        view = table.save(request.user, name=name, query=query, now=timezone.now())
    except BadView as refusal:
        messages.error(request, str(refusal))
        keep_input(request, _input_key(table), "name")
        return redirect(table.address(table.filter_sent(query).query()))
    messages.success(request, f"The view “{view.name}” is saved.")
    return redirect(table.address(view.query))


def forget_view(request: PersonRequest, table: ViewTable, view_id: int) -> HttpResponse:
    view = get_object_or_404(table.of(request.user), pk=view_id)
    view.delete()
    messages.success(request, f"The view “{view.name}” is deleted.")
    return redirect(table.key)


def _input_key(table: ViewTable) -> str:
    """Returns the key under which a refused name is kept."""
    return f"{table.key}-view"
