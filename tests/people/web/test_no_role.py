"""Whoever has no role is told so on every page of the fleet, and never that nothing is wrong."""

import pytest

from fleet.models import Pool
from fleet.web import urls as fleet_urls
from health.web import urls as health_urls
from rollouts.web import urls as rollouts_urls
from tests.make import a_cluster, a_node, a_plan, a_pool, a_user
from tests.pages import Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]

MAP = {"/parts/fleet/map", "/parts/fleet/map/index"}  # numbers for a drawing, and no words
POSTED = {"/stop", "/stop/lifts", "/gpus/views", "/pods/views"}  # buttons, whose page is the one they stand on


def plain_pages() -> list[str]:
    """Every page whose address has nothing to fill in."""
    found = [pattern for urls in (fleet_urls, health_urls, rollouts_urls) for pattern in urls.urlpatterns]
    paths = [f"/{pattern.pattern}" for pattern in found if "<" not in str(pattern.pattern)]
    return [path for path in paths if path not in MAP | POSTED]


PAGES = plain_pages()


def test_the_pages_are_found():
    assert {"/", "/findings", "/pools", "/segments", "/plans", "/parts/findings", "/parts/fleet/nodes"} <= set(PAGES)


@pytest.mark.parametrize("path", PAGES)
def test_no_page_says_that_nothing_is_wrong_to_who_has_no_role(path):
    a_plan()
    reply = visiting(a_user("eve")).get(path)
    said = Page(reply.content.decode()).text

    assert "No findings." not in said
    assert "You have no role yet." in said or reply.status_code == 403
    assert "Ask an admin" in said or reply.status_code == 403


@pytest.mark.parametrize("path", ["/", "/findings", "/gpus", "/plans", "/pools", "/segments"])
def test_who_has_one_sees_the_page(path):
    assert "You have no role yet." not in page(visiting(a_user("bob", role="viewer")), path).text


def test_what_is_not_theirs_to_see_stays_not_there():
    node = a_node(a_plan().cluster)

    page(visiting(a_user("eve")), f"/nodes/{node.pk}", status=404)


def test_an_account_is_shown_and_says_it_too():
    assert "No role: you see nothing. Ask an admin for one." in page(visiting(a_user("eve")), "/account").text


@pytest.fixture
def left():
    """Somebody whose one role is of a pool that is gone."""
    pool = a_pool(a_cluster("eu-1"), "h200")
    left = a_user("left", role="operator", on=pool)
    Pool.objects.filter(pk=pool.pk).delete()
    return visiting(left)


@pytest.mark.parametrize("path", ["/", "/findings", "/parts/findings", "/plans"])
def test_a_role_of_what_is_gone_is_none(left, path):
    said = Page(left.get(path).content.decode()).text

    assert "You have no role yet." in said


def test_an_account_says_of_such_a_role_that_it_gives_nothing(left):
    shown = left.get("/account")
    said = Page(shown.content.decode()).text

    assert "operator of a deleted pool or cluster" in said
    assert "No role: you see nothing. Ask an admin for one." in said
    assert not any(may for _, may in shown.context["permissions"])


@pytest.mark.parametrize("is_on_pool", [True, False])
def test_a_role_of_one_place_is_one(is_on_pool):
    pool = a_pool(a_cluster("eu-1"), "h200")
    bob = visiting(a_user("bob", role="viewer", on=pool if is_on_pool else pool.cluster))

    assert "You have no role yet." not in page(bob, "/").text
    assert "No role" not in page(bob, "/account").text
    assert dict(bob.get("/account").context["permissions"])["see"]
