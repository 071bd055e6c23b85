"""Save and forget views of the table of GPUs. Each person has their own."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from edges.kept_input import keep
from edges.requests import PersonRequest
from health.gpus.views import BadView, filter_sent, save_view, views_of
from health.web.gpus_page import ABOUT, address


@require_POST
def save(request: PersonRequest) -> HttpResponse:
    name, query = request.POST.get("name", ""), request.POST.get("query", "")
    try:
        view = save_view(request.user, name=name, query=query, now=timezone.now())
    except BadView as refusal:
        messages.error(request, str(refusal))
        keep(request, ABOUT, "name")
        return redirect(address(filter_sent(query).query()))
    messages.success(request, f"The view “{view.name}” is saved.")
    return redirect(address(view.query))


@require_POST
def forget(request: PersonRequest, view_id: int) -> HttpResponse:
    view = get_object_or_404(views_of(request.user), pk=view_id)
    view.delete()
    messages.success(request, f"The view “{view.name}” is deleted.")
    return redirect("gpus")
