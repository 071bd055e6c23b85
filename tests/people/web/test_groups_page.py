"""The page of groups, asked by an admin of the fleet, an admin of one cluster, an operator and a stranger."""

import pytest
from django.contrib.auth.models import Group

from people.roster import groups
from tests import make
from tests.pages import HOSTILE, Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


@pytest.fixture
def sre() -> Group:
    return groups.add("sre", actor="root", now=make.NOON)


def after(client, path: str, **form: str) -> str:
    return Page(client.post(path, form, follow=True).content.decode()).text


def test_without_any_the_page_says_who_approves(root):
    assert "No groups." in page(root, "/groups").text


def test_a_group_is_added_filled_emptied_and_removed(root):
    amy = make.a_user("amy")

    assert "It has no members yet" in after(root, "/groups/add", name="sre")
    sre = Group.objects.get(name="sre")
    assert "amy is in sre now" in after(root, f"/groups/{sre.pk}/members", person="amy")
    assert "is already a member of sre" in after(root, f"/groups/{sre.pk}/members", person="amy")
    assert "amy left sre" in after(root, f"/groups/{sre.pk}/members/{amy.pk}/removals")
    assert "The group sre was removed" in after(root, f"/groups/{sre.pk}/removals")


def test_nobody_unknown_is_put_into_it(root, sre):
    assert "Choose a person" in after(root, f"/groups/{sre.pk}/members", person="nobody")


def test_who_is_wrong_is_said_in_the_form_of_that_group_alone(root, sre):
    groups.add("dba", actor="root", now=make.NOON)
    reply = root.post(f"/groups/{sre.pk}/members", {"person": "nobody"})

    said = reply.content.decode().split('class="wrong"')
    assert (reply.status_code, len(said)) == (400, 2)
    assert f'id="group-{sre.pk}"' in said[0].split("<section")[-1]


def test_nobody_whose_name_is_the_beginning_of_another_is_put_into_it(root, sre):
    make.a_user("x" * 150)

    assert "Choose a person" in after(root, f"/groups/{sre.pk}/members", person="x" * 151)


@pytest.mark.parametrize(
    ("name", "status"), [("sre", 409), ("two words", 400), (f"two{' ' * 63}words", 400), (HOSTILE, 400), ("", 400)]
)
def test_a_name_that_cannot_be_is_shown_again_with_why(root, sre, name, status):
    reply = root.post("/groups/add", {"name": name})

    assert reply.status_code == status
    assert 'class="wrong"' in reply.content.decode()


def test_an_admin_of_one_cluster_reads_and_changes_nothing(sre):
    bob = make.a_user("bob")
    make.give(bob, "admin", on=make.a_cluster("eu-1"))
    visit = visiting(bob)

    assert "Remove the group" not in page(visit, "/groups").text
    assert visit.post("/groups/add", {"name": "mine"}).status_code == 403
    assert "you need the role admin on the fleet" in after(visit, f"/groups/{sre.pk}/removals")
    assert Group.objects.get() == sre


@pytest.mark.parametrize("role", ["operator", "approver"])
def test_it_is_for_admins(role, sre):
    assert visiting(make.a_user("eve", role=role)).get("/groups").status_code == 403
