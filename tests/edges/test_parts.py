"""A part that stands at another address is drawn into a page as the browser would fetch it."""

import pytest
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import path

from edges.parts import part_response, rendered_part


@part_response
def heard(request, number: int) -> HttpResponse:
    return HttpResponse(f"<b>{number} heard of {request.GET['name']}</b>")


urlpatterns = [path("parts/heard/<int:number>", heard, name="heard")]


@pytest.mark.urls(__name__)
def test_is_drawn_for_who_asks_for_the_page():
    asking = RequestFactory().get("/", {"name": "alice"})

    assert rendered_part(asking, "heard", 3) == "<b>3 heard of alice</b>"


@pytest.mark.urls(__name__)
def test_is_drawn_whole_where_the_browser_has_the_page_around_it_already():
    known = heard(RequestFactory().get("/", {"name": "alice"}), 3)["ETag"]
    asking = RequestFactory().get("/", {"name": "alice"}, headers={"If-None-Match": known})

    assert heard(asking, 3).status_code == 304
    assert rendered_part(asking, "heard", 3) == "<b>3 heard of alice</b>"
