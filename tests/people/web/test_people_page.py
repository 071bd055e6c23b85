"""The page of people, asked by an admin of the fleet, an admin of one cluster, an operator and a stranger."""

from datetime import timedelta

import pytest
from django.contrib.auth.forms import SetPasswordForm

from people.models import ApiToken, AuditEntry, RoleBinding, User
from people.sign_in.access import links, path_for
from tests import make
from tests.make import NOON
from tests.pages import HOSTILE, Page, page, queries_of, visiting  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


@pytest.fixture
def ada() -> User:
    return make.a_user("ada", role="operator")


def after(client, path: str, **form: str) -> str:
    return Page(client.post(path, form, follow=True).content.decode()).text


def test_an_admin_sees_everybody_with_their_roles(root, ada):
    make.give(ada, "approver", on=make.a_cluster("eu-1"))

    seen = page(root, "/people").text

    assert "operator of the fleet" in seen
    assert "approver of cluster eu-1" in seen


def test_somebody_new_sets_their_own_password(root):
    shown = root.post("/people/add", {"name": "new"})

    person = User.objects.get(username="new")
    path = f"/set-password/{path_for(person).split('/')[2]}/"
    assert path in shown.content.decode()
    assert "no password yet" in page(root, f"/people/{person.pk}").text
    assert path not in page(root, f"/people/{person.pk}").text


@pytest.mark.parametrize(
    ("name", "status"), [("root", 409), ("two words", 400), (f"two{' ' * 150}words", 400), (HOSTILE, 400), ("", 400)]
)
def test_a_name_that_cannot_be_is_shown_again_with_why(root, name, status):
    reply = root.post("/people/add", {"name": name})

    assert reply.status_code == status
    assert 'class="wrong"' in reply.content.decode()
    assert Page(reply.content.decode())


def test_roles_are_given_and_taken(root, ada):
    make.a_pool(make.a_cluster("eu-1"), "h200")

    given = after(root, f"/people/{ada.pk}/roles", role="approver", place="eu-1/h200")
    binding = ada.bindings.get(role="approver")
    taken = after(root, f"/people/{ada.pk}/roles/{binding.pk}/removals")

    assert "ada is approver of pool eu-1/h200 now." in given
    assert "ada is no longer approver of pool eu-1/h200." in taken
    assert [each.verb for each in AuditEntry.objects.order_by("number")] == ["role.grant", "role.take"]


@pytest.mark.parametrize(("role", "place"), [("king", "fleet"), ("viewer", "nowhere"), ("", ""), ("viewer", "")])
def test_a_role_or_place_that_is_none_is_refused(root, ada, role, place):
    assert "Choose a role" in after(root, f"/people/{ada.pk}/roles", role=role, place=place)
    assert ada.bindings.count() == 1


def test_a_role_that_was_refused_is_still_chosen_beside_what_is_wrong(root, ada):
    reply = root.post(f"/people/{ada.pk}/roles", {"role": "approver", "place": "nowhere"})
    html = reply.content.decode()

    assert reply.status_code == 400
    assert '<option value="approver" selected>' in html
    assert html.count("Choose a role and a place.") == 1


def test_a_name_that_was_refused_is_still_written(root):
    assert 'value="two words"' in root.post("/people/add", {"name": "two words"}).content.decode()


def test_who_is_switched_off_is_out_at_once_with_every_token(root, ada):
    theirs, secret = visiting(ada), make.a_token(ada)

    after(root, f"/people/{ada.pk}/switch-off")

    assert theirs.get("/account").status_code == 302
    assert theirs.get("/api/v1/me", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    after(root, f"/people/{ada.pk}/switch-on")
    assert User.objects.get(pk=ada.pk).is_active


def test_the_last_admin_cannot_lock_themselves_out(root):
    me = User.objects.get(username="root")

    off = after(root, f"/people/{me.pk}/switch-off")
    taken = after(root, f"/people/{me.pk}/roles/{me.bindings.get().pk}/removals")

    assert "This is the last admin of the fleet" in off
    assert "This is the last admin of the fleet" in taken
    assert User.objects.get(pk=me.pk).is_active


def test_tokens_are_seen_and_their_secret_is_not(root, ada):
    secret = make.a_token(ada)
    token = ApiToken.objects.get()

    seen = page(root, f"/people/{ada.pk}").text
    after(root, f"/people/{ada.pk}/tokens/{token.pk}/revocations")

    assert "test" in seen
    assert token.hint not in seen
    assert secret not in seen
    token.refresh_from_db()
    assert token.revoked_at


def test_a_link_ends_when_its_person_is_switched_off_or_has_used_it(ada, client):
    token = links.make_token(ada)
    ada.is_active = False

    assert not links.check_token(ada, token)
    ada.is_active = True
    assert links.check_token(ada, token)
    ada.set_password("a long password")
    assert not links.check_token(ada, token)


NEW = {"new_password1": "a long password", "new_password2": "a long password"}


def opened(client, person: User) -> str:
    """The form behind their link."""
    return client.get(path_for(person)).headers["Location"]


def test_who_sets_a_password_by_a_link_signs_in_with_it(ada, client):
    set_by = client.post(opened(client, ada), NEW)

    ada.refresh_from_db()
    assert (set_by.status_code, set_by.headers["Location"]) == (302, "/sign-in")
    assert ada.check_password("a long password")
    assert [entry.verb for entry in AuditEntry.objects.filter(subject=f"person:{ada.pk}")] == ["person.password"]


@pytest.mark.django_db(transaction=True)
def test_a_password_is_set_with_its_entry_or_not_at_all(ada, client, monkeypatch):
    def crashes(*given, **named):
        raise OSError("the disk is full")

    path = opened(client, ada)
    monkeypatch.setattr(AuditEntry, "record", crashes)
    with pytest.raises(OSError):
        client.post(path, NEW)

    ada.refresh_from_db()
    assert not ada.check_password("a long password")


def test_who_is_switched_off_while_they_set_a_password_stays_so(ada, client, monkeypatch):
    def meanwhile(form) -> None:
        User.objects.filter(pk=ada.pk).update(is_active=False)
        return clean(form)

    path, clean = opened(client, ada), SetPasswordForm.clean
    monkeypatch.setattr(SetPasswordForm, "clean", meanwhile)
    refused = client.post(path, NEW)

    ada.refresh_from_db()
    assert "does not work any more" in Page(refused.content.decode()).text
    assert (ada.is_active, ada.check_password("a long password")) == (False, False)
    assert not AuditEntry.objects.filter(subject=f"person:{ada.pk}").exists()


@pytest.mark.parametrize("path", ["/set-password/MQ/x-y", "/set-password/%21/x", "/set-password/OTk5OTk/set-password"])
def test_a_link_that_is_none_says_so(client, path):
    assert "does not work any more" in Page(client.get(path).content.decode()).text


def acts_on(person: User, binding: RoleBinding) -> dict[str, dict[str, str]]:
    return {
        "/people/add": {"name": "new"},
        f"/people/{person.pk}/password-links": {},
        f"/people/{person.pk}/switch-off": {},
        f"/people/{person.pk}/switch-on": {},
        f"/people/{person.pk}/roles": {"role": "admin", "place": "fleet"},
        f"/people/{person.pk}/roles/{binding.pk}/removals": {},
        f"/people/{person.pk}/tokens/{ApiToken.objects.get().pk}/revocations": {},
    }


def standing() -> tuple:
    people = sorted(User.objects.values_list("username", "is_active", "password"))
    roles = sorted(RoleBinding.objects.values_list("user", "role", "scope", "scope_id"))
    return people, roles, ApiToken.objects.filter(revoked_at=None).count()


@pytest.mark.parametrize("role", ["operator", "approver", "viewer", None])
def test_nobody_but_an_admin_sees_or_does_anything(ada, role):
    make.a_user("root", role="admin")
    make.a_token(ada)
    client = visiting(make.a_user("eve", role=role))
    before = standing()

    for path, form in acts_on(ada, ada.bindings.get()).items():
        reply = client.post(path, form)
        assert (path, reply.status_code) == (path, 403)
        assert "you need the role admin" in Page(reply.content.decode()).text
    for path in ("/people", f"/people/{ada.pk}"):
        page(client, path, status=403)
    assert standing() == before


def test_an_admin_of_a_cluster_gives_roles_there_and_nowhere_else(ada):
    mine, other = make.a_cluster("mine"), make.a_cluster("other")
    make.a_pool(mine, "a")
    make.a_pool(other, "b")
    make.a_user("root", role="admin")
    make.a_token(ada)
    eve = make.a_user("eve", role="admin", on=mine)
    client = visiting(eve)
    before = standing()

    for path, form in acts_on(ada, ada.bindings.get()).items():
        client.post(path, form)
    for place, refused in (
        ("fleet", "you need the role admin"),
        ("other", "Choose a role"),
        ("other/b", "Choose a role"),
    ):
        for person in (ada, eve):
            assert refused in after(client, f"/people/{person.pk}/roles", role="viewer", place=place)
    assert standing() == before

    assert "ada is viewer of cluster mine now." in after(client, f"/people/{ada.pk}/roles", role="viewer", place="mine")
    assert "of pool mine/a now." in after(client, f"/people/{ada.pk}/roles", role="viewer", place="mine/a")


def test_an_admin_of_a_pool_gives_roles_on_that_pool(ada):
    cluster = make.a_cluster("eu")
    pool = make.a_pool(cluster, "a")
    client = visiting(make.a_user("eve", role="admin", on=pool))

    assert "of pool eu/a now." in after(client, f"/people/{ada.pk}/roles", role="viewer", place="eu/a")
    assert "you need the role admin on cluster eu" in after(
        client, f"/people/{ada.pk}/roles", role="viewer", place="eu"
    )


def test_an_admin_of_a_pool_reads_of_no_other_place_and_of_nobodys_tokens(ada):
    pool, secret = make.a_pool(make.a_cluster("mine"), "a"), make.a_cluster("secret")
    eve = make.a_user("eve", role="admin", on=pool)
    zed = make.a_user("zed", role="viewer", on=secret)
    make.a_token(zed)
    client = visiting(eve)

    everybody, one = page(client, "/people").text, page(client, f"/people/{zed.pk}").text

    assert "secret" not in everybody + one
    assert "no role that you see" in everybody
    assert "No role that you see." in one
    assert "test" not in one
    assert client.post(f"/people/{zed.pk}/roles/{zed.bindings.get().pk}/removals").status_code == 404


def test_every_act_takes_a_post_and_the_page_one_look(root, ada, queries_of):  # noqa: F811
    for path in acts_on_paths(ada):
        assert root.get(path).status_code == 405

    make.a_user(role="viewer", on=make.a_cluster())
    few = queries_of(root, "/people")
    for _ in range(5):
        make.a_user(role="viewer", on=make.a_cluster())
    assert queries_of(root, "/people") == few


def acts_on_paths(person: User) -> list[str]:
    make.a_token(person)
    return list(acts_on(person, person.bindings.get()))


def test_a_token_that_has_expired_is_said_to_be(root, ada):
    make.a_token(ada, expires_at=NOON - timedelta(days=1))

    assert "expired" in page(root, f"/people/{ada.pk}").text


def test_no_page_with_a_link_that_sets_a_password_is_kept(root, ada):
    for shown in (root.post("/people/add", {"name": "new"}), root.post(f"/people/{ada.pk}/password-links")):
        assert "/set-password/" in shown.content.decode()
        assert "no-store" in shown["Cache-Control"]
