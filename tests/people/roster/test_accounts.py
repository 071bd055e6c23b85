"""Making people and giving them roles: each act is kept, and nobody locks the last admin out."""

from threading import Barrier, Thread

import pytest
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import connection

from people.models import AuditEntry, RoleBinding, User
from people.models.audit_entry import broken_links
from people.places import FLEET, all_places
from people.roster import accounts
from people.roster.accounts import HasItAlready, KeyReused, LastAdmin, NameTaken
from tests.locks import while_it_is_written
from tests.make import NOON, a_cluster, a_pool, a_user

pytestmark = pytest.mark.sqlite

ACTING = {"actor": "root", "now": NOON}


def place_named(name: str):
    return next(place for place in all_places() if place.name == name)


def verbs(person: User) -> list[str]:
    entries = AuditEntry.objects.filter(subject=f"person:{person.pk}")
    assert not list(broken_links(entries))
    return [entry.verb for entry in entries]


@pytest.mark.django_db
def test_every_act_is_kept():
    a_user("root", role="admin")
    person = accounts.add("ada", **ACTING)
    binding = accounts.grant(person, "operator", FLEET, **ACTING)
    accounts.end_role(binding, FLEET, **ACTING)
    accounts.switch_off(person, **ACTING)
    accounts.switch_on(person, **ACTING)

    assert verbs(person) == ["person.add", "role.grant", "role.take", "person.switch-off", "person.switch-on"]
    assert AuditEntry.objects.get(verb="role.grant").evidence == {"person": "ada", "role": "operator", "on": "fleet"}


@pytest.mark.django_db(transaction=True)
def test_of_two_names_under_one_key_at_once_the_second_is_refused():
    a_user("root", role="admin")

    errors = while_it_is_written(
        lambda: accounts.add("ada", key="k1", **ACTING), lambda: accounts.add("kim", key="k1", **ACTING)
    )

    assert [type(error) for error in errors] == [KeyReused]
    assert not User.objects.filter(username="kim").exists()


@pytest.mark.django_db
def test_who_is_new_gets_in_nowhere_yet():
    person = accounts.add(" ａda ", **ACTING)

    assert (person.username, person.has_usable_password(), person.bindings.count()) == ("ada", False, 0)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["ada", "ADA", "ａｄａ"])
def test_a_name_that_reads_the_same_is_taken(name):
    accounts.add("ada", **ACTING)

    with pytest.raises(NameTaken):
        accounts.add(name, **ACTING)


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["", "two words", "a\x00b", "x" * 151, "<b>"])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(ValidationError):
        accounts.add(name, **ACTING)


@pytest.mark.django_db
def test_a_role_is_given_once():
    person = accounts.add("ada", **ACTING)
    accounts.grant(person, "viewer", FLEET, **ACTING)

    with pytest.raises(HasItAlready, match="ada is already viewer of the fleet"):
        accounts.grant(person, "viewer", FLEET, **ACTING)


@pytest.mark.django_db
def test_the_last_admin_stays():
    root = a_user("root", role="admin")
    invited = accounts.add("later", **ACTING)
    accounts.grant(invited, "admin", FLEET, **ACTING)  # cannot sign in yet
    off = a_user("off", role="admin")
    accounts.switch_off(off, **ACTING)
    a_user("elsewhere", role="admin", on=a_cluster())

    with pytest.raises(LastAdmin):
        accounts.end_role(root.bindings.get(), FLEET, **ACTING)
    with pytest.raises(LastAdmin):
        accounts.switch_off(root, **ACTING)

    root.refresh_from_db()
    assert (root.is_active, root.bindings.count()) == (True, 1)
    assert verbs(root) == []


@pytest.mark.django_db(transaction=True)
def test_two_admins_who_take_each_others_role_at_once_leave_one():
    pair = [a_user("amy", role="admin"), a_user("bob", role="admin")]
    barrier, refused = Barrier(2), []

    def take(binding: RoleBinding) -> None:
        barrier.wait()
        try:
            accounts.end_role(binding, FLEET, **ACTING)
        except LastAdmin:
            refused.append(binding)
        finally:
            connection.close()

    threads = [Thread(target=take, args=[user.bindings.get()]) for user in pair]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(refused), RoleBinding.objects.count()) == (1, 1)


@pytest.mark.django_db
def test_clusters_and_pools_are_places():
    cluster = a_cluster("eu-1")
    pool = a_pool(cluster, "h200")

    place = place_named("eu-1/h200")

    assert place
    assert (place.scope, place.key, place.cluster_id, place.words) == ("pool", pool.pk, cluster.pk, "pool eu-1/h200")


@pytest.mark.django_db
def test_the_first_admin_comes_from_a_shell(capsys, client, settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://q.example"]
    call_command("add_person", "ada", "--role", "admin")
    link = capsys.readouterr().out.strip()

    assert link.startswith("https://q.example/set-password/")
    form = client.get(link.removeprefix("https://q.example"), follow=True)
    path = form.redirect_chain[-1][0]
    chosen = {"new_password1": "a password of hers", "new_password2": "a password of hers"}
    assert client.post(path, chosen)["Location"] == "/sign-in"
    assert client.post("/sign-in", {"username": "ada", "password": "a password of hers"})["Location"] == "/"
    person = User.objects.get(username="ada")
    assert verbs(person) == ["person.add", "role.grant", "person.password-link", "person.password"]
    assert b"does not work any more" in client.get(link.removeprefix("https://q.example"), follow=True).content


@pytest.mark.django_db
def test_the_commands(capsys):
    a_user("root", role="admin")
    a_pool(a_cluster("eu-1"), "h200")
    call_command("add_person", "ada")
    call_command("grant_role", "ada", "operator", "--on", "eu-1/h200")
    call_command("password_link", "ada")

    assert "ada is operator of pool eu-1/h200 now." in capsys.readouterr().out
    for wrong in (
        ("grant_role", "ada", "operator", "--on", "eu-1/h200"),
        ("grant_role", "eve", "operator"),
        ("grant_role", "ada", "operator", "--on", "eu-2"),
        ("add_person", "ADA"),
        ("add_person", "two words"),
    ):
        with pytest.raises(CommandError):
            call_command(*wrong)
