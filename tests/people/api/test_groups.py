import pytest
from django.contrib.auth.models import Group

from tests.make import a_cluster, a_user, give

pytestmark = pytest.mark.django_db
GROUPS = "/api/v1/groups"


@pytest.fixture
def root(client):
    client.force_login(a_user("root", role="admin"))
    return client


def made(client, name: str = "sre"):
    return client.post(GROUPS, {"name": name}, content_type="application/json")


def test_a_group_is_made_filled_and_emptied(root):
    amy = a_user("amy")
    group = made(root).json()
    members = f"{GROUPS}/{group['id']}/members"

    joined = root.post(members, {"username": "amy"}, content_type="application/json")
    again = root.post(members, {"username": "amy"}, content_type="application/json")

    assert (joined.status_code, again.status_code) == (201, 200)
    assert [each["username"] for each in joined.json()["members"]] == ["amy"]
    assert [each["name"] for each in root.get(GROUPS).json()["results"]] == ["sre"]
    assert root.delete(f"{members}/{amy.pk}").status_code == 204
    assert root.delete(f"{members}/{amy.pk}").status_code == 404
    assert root.get(f"{GROUPS}/{group['id']}").json()["members"] == []
    assert root.delete(f"{GROUPS}/{group['id']}").status_code == 204


def test_what_is_wrong_names_its_field(root):
    group = made(root).json()

    assert "name" in str(made(root, "two words").json()["errors"])
    assert made(root, "SRE").json()["type"].endswith("name-taken")
    nobody = root.post(f"{GROUPS}/{group['id']}/members", {"username": "nobody"}, content_type="application/json")
    assert "username" in str(nobody.json()["errors"])


def test_an_admin_of_one_cluster_reads_them_only(client, root):
    made(root)
    bob = a_user("bob")
    give(bob, "admin", on=a_cluster("eu-1"))
    client.force_login(bob)

    assert client.get(GROUPS).json()["results"][0]["name"] == "sre"
    assert made(client, "mine").status_code == 403
    assert client.delete(f"{GROUPS}/{Group.objects.get().pk}").status_code == 403


def test_who_has_no_role_finds_none(client):
    client.force_login(a_user("eve"))

    assert client.get(GROUPS).status_code == 404
