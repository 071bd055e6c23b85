"""Every rule there is: what its findings mean, and what people said of them."""

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from edges.requests import PersonRequest
from health.inbox.rulebook import on_page


def rules(request: PersonRequest) -> HttpResponse:
    return render(request, "health/rules/page.html", {"rules": on_page(request.user, now=timezone.now())})
