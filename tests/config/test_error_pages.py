"""What a browser shows of what failed: styled, in words, and with a way on."""

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.test import Client, RequestFactory

from config import errors
from tests.make import a_user
from tests.pages import Page, visiting

LARGE = "x" * 3_000_000


def shown(reply, status: int) -> Page:
    assert reply.status_code == status
    found = Page(reply.content.decode())
    assert "/" in found.links
    return found


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/nothing", "/plans/999999", "/nodes/999999", "/clusters/999999", "/stages/9/approval"]
)
def test_what_is_not_there_is_a_page(path):
    found = shown(visiting(a_user(role="viewer")).get(path), 404)

    assert "Page not found" in found.text
    assert "base.css" in str(visiting(a_user()).get(path).content)


@pytest.mark.django_db
def test_what_was_written_for_what_is_gone_is_said_once_more():
    """A window that somebody else removed while a person wrote why they remove it."""
    root = visiting(a_user(role="admin"))
    written = {"reason": "24/7 <now>."}

    assert "Your text was not saved: 24/7 <now>." in shown(root.post("/windows/7/removals", written), 404).text
    assert "not saved." not in shown(root.get("/nothing", written), 404).text


@pytest.mark.django_db
def test_a_form_that_was_sent_nowhere_is_not_read():
    shown(visiting(a_user(role="viewer")).post("/nothing", {"reason": LARGE}), 404)


@pytest.mark.django_db
def test_nobody_gets_the_same_page():
    assert "Page not found" in shown(Client().get("/nothing"), 404).text


@pytest.mark.django_db
def test_a_form_that_is_too_large_is_told_so():
    found = shown(visiting(a_user(role="admin")).post("/pools/file", {"text": LARGE}), 413)

    assert "Request too large" in found.text
    assert "Host" not in found.text


@pytest.mark.django_db
@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", "text/plain"])
def test_a_body_that_is_too_large_is_told_so_by_rest(content_type):
    reply = visiting(a_user(role="admin")).post("/api/v1/plans", LARGE, content_type=content_type)

    assert reply.status_code in {413, 415}
    assert "Host" not in reply.json()["detail"]


def test_what_django_itself_finds_too_large_is_413_to_rest_as_well():
    reply = errors.bad_request(RequestFactory().post("/api/v1/plans"), RequestDataTooBig())

    assert reply.status_code == 413
    assert b"Host" not in reply.content


@pytest.mark.django_db
def test_more_fields_than_any_form_has_are_told(settings):
    query = "&".join(f"a{number}=1" for number in range(settings.DATA_UPLOAD_MAX_NUMBER_FIELDS + 1))

    assert "too many fields" in shown(Client().get(f"/sign-in?{query}"), 400).text


def test_a_wrong_host_is_told_so():
    assert "Unknown host name" in shown(Client().get("/sign-in", headers={"host": "elsewhere.example"}), 400).text


@pytest.mark.django_db
def test_a_form_of_an_old_page_says_what_to_do():
    client = Client(enforce_csrf_checks=True)

    assert "Reload the page" in shown(client.post("/sign-in", {"username": "a", "password": "b"}), 403).text


def test_who_may_not_is_told_why():
    request = RequestFactory().get("/people")

    found = shown(errors.forbidden(request, PermissionDenied("You need the role admin.")), 403)

    assert "You need the role admin." in found.text


def test_a_bug_asks_nobody(django_assert_num_queries, db):
    with django_assert_num_queries(0):
        found = shown(errors.server_error(RequestFactory().get("/")), 500)

    assert "bug in Quarterdeck" in found.text


@pytest.mark.django_db
def test_an_address_that_takes_forms_alone_is_a_page_to_who_opens_it():
    reply = visiting(a_user(role="admin")).get("/people/add")

    assert "No page here" in shown(reply, 405).text
    assert reply["Allow"] == "POST"
