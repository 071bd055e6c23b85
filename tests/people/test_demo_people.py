import json

import pytest
from django.core.management import CommandError, call_command

from people.models import Role, RoleBinding, User

pytestmark = pytest.mark.django_db
PASSWORD = "demo-on-loopback"


@pytest.fixture
def made(capsys, settings):
    settings.ALLOWED_HOSTS = ["127.0.0.1"]

    def make() -> list[dict[str, str]]:
        call_command("create_demo_people", "--password", PASSWORD)
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return make


def test_makes_a_login_of_each_role(made):
    lines = made()

    assert [line["role"] for line in lines] == [role.value for role in Role]
    assert all(User.objects.get(username=line["username"]).check_password(PASSWORD) for line in lines)
    assert {binding.role for binding in RoleBinding.objects.all()} == set(Role)


def test_a_login_that_is_there_keeps_its_password_and_its_roles(made):
    made()
    admin = User.objects.get(username="admin")
    admin.set_password("what-its-owner-chose")
    admin.save()
    RoleBinding.objects.filter(user__username="operator").delete()

    again = made()

    assert User.objects.get(username="admin").check_password("what-its-owner-chose")
    assert not RoleBinding.objects.filter(user__username="operator").exists()
    assert all("password" not in line for line in again)


def test_refuses_where_others_can_reach_it(settings):
    settings.ALLOWED_HOSTS = ["quarterdeck.example"]

    with pytest.raises(CommandError, match="only on a loopback server"):
        call_command("create_demo_people", "--password", PASSWORD)

    assert not User.objects.exists()
