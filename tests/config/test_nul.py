"""A NUL is text nowhere: PostgreSQL has no such character, and what reaches it with one is a 500 there."""

import pytest
from django.conf import settings

from tests.make import a_cluster, a_node, a_plan, a_user
from tests.pages import visiting

PAGES = [
    "/",
    "/parts/fleet",
    "/segments",
    "/pools",
    "/plans",
    "/pools/new",
    "/findings",
    "/findings/shift-report",
    "/no/such/page",
]
LISTS = ["nodes", "gpus", "pods", "pools", "plans", "stages", "segments", "findings", "clusters"]


@pytest.fixture
def viewer(db):
    a_node(a_cluster())
    return visiting(a_user(role="viewer"))


@pytest.mark.parametrize("path", PAGES)
def test_a_query_of_a_page_with_one_is_refused(viewer, path):
    """The middleware reads the whole query, whatever its fields are called."""
    for query in ("q=a%00b", "pool=1&sort=%00", "%00=1"):
        reply = viewer.get(f"{path}?{query}")

        assert reply.status_code == 400
        assert b"There is a NUL character in the query." in reply.content


@pytest.mark.parametrize("path", LISTS)
def test_a_query_of_rest_with_one_is_refused(bob, path):
    for name in ("cluster", "name", "search", "selector", "ordering", "offset", "a\x00b"):
        reply = bob.get(f"/api/v1/{path}", {name: "a\x00b"})

        assert reply.status_code == 400
        assert reply.json()["detail"].startswith("There is a NUL character in the query.")


def test_an_address_with_one_is_refused(viewer):
    assert viewer.get("/plans/%00").status_code == 400
    assert viewer.get("/api/v1/nodes/%00").status_code == 400


def test_a_session_that_is_spelt_with_one_is_refused(viewer):
    """A quoted cookie may name any character in octal."""
    viewer.cookies[settings.SESSION_COOKIE_NAME] = "x"
    viewer.cookies[settings.SESSION_COOKIE_NAME].set(settings.SESSION_COOKIE_NAME, "", r'"\000aaaaaaaaaaaaaaaa"')

    reply = viewer.get("/")

    assert reply.status_code == 400
    assert b"in a cookie" in reply.content


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/sign-in", {"username": "a\x00b", "password": "x"}),
        ("/sign-in", {"username": "a", "password": "x\x00"}),
        ("/account/tokens", {"name": "a\x00b", "days": "30", "permissions": ["see"]}),
        ("/pools/file", {"text": "pools: \x00"}),
        ("/pools/new", {"name": "a\x00", "selector": "a=b"}),
    ],
)
def test_a_form_with_one_is_refused(viewer, path, form):
    reply = viewer.post(path, form)

    assert reply.status_code == 400
    assert b"There is a NUL character in the form." in reply.content


def test_the_name_of_a_field_is_text_too(viewer):
    assert viewer.post("/account/tokens", {"na\x00me": "a"}).status_code == 400


@pytest.mark.parametrize("text", ["\\u0000", "a\\u0000b", "\\ud800", "a\\udfff"])
def test_a_body_with_what_is_no_text_is_refused(ada, text):
    plan = a_plan()
    for path, body in (
        (f"plans/{plan.pk}/halts", '{"reason": "%s"}'),
        ("session", '{"username": "%s", "password": "x"}'),
        ("plans", '{"driver_object": 1, "to_version": "%s", "stages": []}'),
        ("plans", '{"%s": 1}'),
        ("tokens", '{"name": "x", "permissions": ["%s"]}'),
    ):
        reply = ada.post(f"/api/v1/{path}", body % text, content_type="application/json")

        assert (reply.status_code, path) == (400, path)
        assert "The text has" in reply.json()["detail"]


def test_a_backslash_before_the_digits_is_no_nul(ada):
    plan = a_plan()

    reply = ada.post(f"/api/v1/plans/{plan.pk}/halts", r'{"reason": "C:\\u0000"}', content_type="application/json")

    assert reply.status_code == 204
