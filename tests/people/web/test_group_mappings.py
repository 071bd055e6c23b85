"""The mapping of groups to roles: its page, its REST, and what a sign-in makes of it."""

from dataclasses import replace

import pytest

from config.settings.oidc import GroupRole, Oidc
from people.models import AuditEntry, GroupMapping
from people.sign_in.group_roles import roles_in
from tests import make
from tests.callers import calling
from tests.pages import HOSTILE, Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
PATH, REST = "/people/group-mappings", "/api/v1/group-mappings"


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


def test_an_admin_maps_a_group_and_removes_the_mapping(root):
    make.a_pool(make.a_cluster("eu-1"), "h200")

    root.post(f"{PATH}/add", {"group": " gpu-oncall ", "role": "operator", "place": "eu-1/h200"})

    mapping = GroupMapping.objects.get()
    assert (mapping.group, mapping.role, mapping.scope) == ("gpu-oncall", "operator", "pool")
    shown = page(root, PATH).text
    assert "gpu-oncall operator pool eu-1/h200" in shown
    again = root.post(f"{PATH}/add", {"group": "gpu-oncall", "role": "operator", "place": "eu-1/h200"})
    assert (again.status_code, "has the role operator" in Page(again.content.decode()).text) == (409, True)
    root.post(f"{PATH}/{mapping.pk}/removals")
    assert not GroupMapping.objects.exists()
    assert [entry.verb for entry in AuditEntry.objects.filter(subject=f"mapping:{mapping.pk}")] == [
        "mapping.add",
        "mapping.remove",
    ]


@pytest.mark.parametrize("group", ["", "  ", "x" * 256])
def test_a_mapping_needs_a_group(root, group):
    assert root.post(f"{PATH}/add", {"group": group, "role": "viewer", "place": "fleet"}).status_code == 400


def test_the_page_shows_hostile_names_and_what_the_settings_map(root, settings):
    settings.OIDC = Oidc("https://idp", "q", "s", roles=(GroupRole("gpu-admins", "admin", "fleet"),))
    root.post(f"{PATH}/add", {"group": HOSTILE, "role": "viewer", "place": "fleet"})

    assert "gpu-admins admin fleet from QUARTERDECK_OIDC_ROLES" in page(root, PATH).text
    assert HOSTILE in page(root, PATH).text


def test_only_admins_of_the_fleet_map_groups():
    carl = make.a_user("carl", role="admin", on=make.a_cluster())

    assert visiting(carl).get(PATH).status_code == 403
    assert visiting(carl).post(f"{PATH}/add", {"group": "x", "role": "admin", "place": "fleet"}).status_code == 403
    assert calling(carl).get(REST).status_code == 403


def test_rest_maps_a_group(root):
    rest = calling(make.a_user("amy", role="admin"))
    asked = {"group": "team-a", "role": "viewer", "scope": "cluster", "scope_id": make.a_cluster().pk}

    made = rest.post(REST, asked, format="json")

    assert made.status_code == 201
    assert rest.get(REST).json()["results"] == [{"id": made.json()["id"], **asked}]
    assert rest.post(REST, asked, format="json").status_code == 409
    assert rest.post(REST, asked | {"scope_id": 0}, format="json").status_code == 400
    assert rest.delete(f"{REST}/{made.json()['id']}").status_code == 204


def test_a_sign_in_adds_up_the_roles_of_settings_and_page(settings):
    cluster = make.a_cluster("eu-1")
    settings.OIDC = replace(settings.OIDC, roles=(GroupRole("a", "viewer", "fleet"), GroupRole("z", "admin", "fleet")))
    for group, scope, key in [("a", "cluster", cluster.pk), ("b", "pool", 999), ("c", "fleet", 0)]:
        GroupMapping.objects.create(group=group, role="operator", scope=scope, scope_id=key)

    roles = {(role, place.name) for role, place in roles_in({"groups": ["a", "b"]})}

    assert roles == {("viewer", "fleet"), ("operator", "eu-1")}
    assert roles_in({"groups": ["A", "ab"]}) == frozenset()
