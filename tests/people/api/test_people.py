"""People by REST: what the page of people does, asked by an admin of the fleet, one of a cluster, and others."""

import json

import pytest

from people.models import ApiToken, AuditEntry, RoleBinding, User
from people.roster import accounts
from people.roster.accounts import HasItAlready
from people.sign_in.access import links
from tests.callers import ada, bob, calling, eve, now, root  # noqa: F401 (fixtures)
from tests.make import a_cluster, a_pool, a_token, a_user, give

PEOPLE = "/api/v1/people"


def post(caller, path: str, body: dict | None = None, *, key: str = ""):
    headers = {"Idempotency-Key": key} if key else {}
    return caller.post(path, body or {}, format="json", headers=headers)


@pytest.fixture
def pat(db, now) -> User:  # noqa: F811
    return a_user("pat", role="operator")


def test_everybody_is_listed_with_roles_and_where(root, pat):  # noqa: F811
    cluster = a_cluster("eu-1")
    give(pat, "approver", on=a_pool(cluster, "h200"))
    RoleBinding.objects.create(user=pat, role="viewer", scope="cluster", scope_id=987654)

    (found,) = [row for row in root.get(PEOPLE).json()["results"] if row["username"] == "pat"]

    assert [(role["role"], role["scope"], role["on"]) for role in found["roles"]] == [
        ("operator", "fleet", "fleet"), ("approver", "pool", "eu-1/h200"), ("viewer", "cluster", None),
    ]  # fmt: skip
    assert root.get(f"{PEOPLE}/{pat.pk}").json() == found
    assert set(found) == {"id", "username", "is_active", "has_password", "last_sign_in_at", "roles"}


def test_somebody_is_added_without_role_and_password_and_that_is_kept(root):  # noqa: F811
    reply = post(root, PEOPLE, {"username": "new"})

    assert reply.status_code == 201
    assert (reply.json()["roles"], reply.json()["has_password"], reply.json()["is_active"]) == ([], False, True)
    entry = AuditEntry.objects.get(subject=f"person:{reply.json()['id']}")
    assert (entry.verb, entry.actor, entry.evidence) == ("person.add", "root", {"person": "new"})


def test_the_same_key_adds_somebody_once_and_another_finds_the_name_taken(root):  # noqa: F811
    first = post(root, PEOPLE, {"username": "new"}, key="k1")
    again = post(root, PEOPLE, {"username": "new"}, key="k1")

    assert (again.status_code, again.json()) == (201, first.json())
    assert AuditEntry.objects.count() == 1
    for given in ({"key": "k2"}, {}):
        refused = post(root, PEOPLE, {"username": "new"}, **given)
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:quarterdeck:problem:name-taken")
    other = calling(a_user("rita", role="admin"))
    assert post(other, PEOPLE, {"username": "new"}, key="k1").status_code == 409
    assert post(root, PEOPLE, {"username": "NEW"}, key="k1").status_code == 409


def test_a_key_that_added_somebody_adds_nobody_else_and_not_who_has_another_name_now(root):  # noqa: F811
    first = post(root, PEOPLE, {"username": "new"}, key="k1")

    other = post(root, PEOPLE, {"username": "other"}, key="k1")
    User.objects.filter(pk=first.json()["id"]).update(username="renamed")
    renamed = post(root, PEOPLE, {"username": "new"}, key="k1")

    assert [(each.status_code, each.json()["type"]) for each in (other, renamed)] == [
        (409, "urn:quarterdeck:problem:key-reused")
    ] * 2
    assert "new is renamed now." in renamed.json()["detail"]
    assert not User.objects.filter(username__in=["new", "other"]).exists()


@pytest.mark.parametrize("name", ["two words", "", "x" * 151, "a\x00b", "<b>"])
def test_what_is_no_name_is_refused_at_its_field(root, name):  # noqa: F811
    reply = post(root, PEOPLE, {"username": name})

    assert reply.status_code == 400
    assert reply.json()["errors"][0]["field"] == "username"


def test_who_is_switched_off_is_out_at_once_with_every_token_and_twice_is_once(root, pat):  # noqa: F811
    theirs = calling(token=a_token(pat))

    for _ in range(2):
        reply = root.patch(f"{PEOPLE}/{pat.pk}", {"is_active": False}, format="json")
        assert (reply.status_code, reply.json()["is_active"]) == (200, False)

    assert theirs.get("/api/v1/me").status_code == 401
    assert root.patch(f"{PEOPLE}/{pat.pk}", {"is_active": True}, format="json").json()["is_active"]
    verbs = AuditEntry.objects.filter(subject=f"person:{pat.pk}").values_list("verb", flat=True)
    assert list(verbs) == ["person.switch-off", "person.switch-on"]


def test_a_role_is_given_once_and_taken(root, pat):  # noqa: F811
    cluster = a_cluster("eu-1")
    asked = {"role": "approver", "scope": "cluster", "scope_id": cluster.pk}

    given, again = (post(root, f"{PEOPLE}/{pat.pk}/roles", asked) for _ in range(2))
    taken = root.delete(f"{PEOPLE}/{pat.pk}/roles/{given.json()['id']}")

    assert (given.status_code, given.json()["on"]) == (201, "eu-1")
    assert (again.status_code, again.json()) == (200, given.json())
    assert taken.status_code == 204
    assert [role.role for role in pat.bindings.all()] == ["operator"]
    verbs = AuditEntry.objects.filter(subject=f"person:{pat.pk}").values_list("verb", flat=True)
    assert list(verbs) == ["role.grant", "role.take"]


def test_a_role_that_is_taken_while_it_is_given_again_is_a_conflict(root, pat, monkeypatch):  # noqa: F811
    def lost(*_, **__):
        raise HasItAlready("pat is already viewer of the fleet.")

    monkeypatch.setattr(accounts, "grant", lost)

    reply = post(root, f"{PEOPLE}/{pat.pk}/roles", {"role": "viewer", "scope": "fleet"})

    assert (reply.status_code, reply.json()["type"]) == (409, "urn:quarterdeck:problem:has-it-already")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"role": "king", "scope": "fleet"}, "role"),
        ({"role": "viewer", "scope": "moon"}, "scope"),
        ({"role": "viewer", "scope": "cluster", "scope_id": 987654}, "scope_id"),
        ({"role": "viewer", "scope": "fleet", "scope_id": 1}, "scope_id"),
    ],
)
def test_a_role_or_place_that_is_none_is_refused_at_its_field(root, pat, asked, field):  # noqa: F811
    reply = post(root, f"{PEOPLE}/{pat.pk}/roles", asked)

    assert (reply.status_code, reply.json()["errors"][0]["field"]) == (400, field)
    assert pat.bindings.count() == 1


def test_the_last_admin_cannot_lock_themselves_out(root):  # noqa: F811
    me = root.user

    off = root.patch(f"{PEOPLE}/{me.pk}", {"is_active": False}, format="json")
    taken = root.delete(f"{PEOPLE}/{me.pk}/roles/{me.bindings.get().pk}")

    assert [(reply.status_code, reply.json()["type"]) for reply in (off, taken)] == [
        (409, "urn:quarterdeck:problem:last-admin")
    ] * 2


def test_a_password_link_works_and_only_a_signed_in_person_gets_one(root, pat):  # noqa: F811
    reply = post(root, f"{PEOPLE}/{pat.pk}/password-links")
    by_token = post(calling(token=a_token(root.user)), f"{PEOPLE}/{pat.pk}/password-links")

    assert reply.status_code == 201
    *_, secret = reply.json()["link"].rstrip("/").split("/")
    pat.refresh_from_db()
    assert links.check_token(pat, secret)
    assert by_token.status_code == 403
    (entry,) = AuditEntry.objects.filter(subject=f"person:{pat.pk}")
    assert entry.verb == "person.password-link"
    assert secret not in json.dumps(entry.evidence)


def test_nothing_that_signs_somebody_in_is_in_any_answer(root, pat):  # noqa: F811
    pat.set_password("a long password")
    pat.save()
    secret = a_token(pat)
    hint = ApiToken.objects.get().hint

    for path in (PEOPLE, f"{PEOPLE}/{pat.pk}", f"{PEOPLE}/{pat.pk}/tokens"):
        said = root.get(path).content.decode()
        assert not any(word in said for word in (pat.password, pat.password.split("$")[0], secret, hint)), path


def test_tokens_are_seen_and_revoked_by_a_signed_in_person(root, pat):  # noqa: F811
    theirs = calling(token=a_token(pat))
    token = ApiToken.objects.get()
    path = f"{PEOPLE}/{pat.pk}/tokens"

    assert [row["name"] for row in root.get(path).json()["results"]] == ["test"]
    assert calling(token=a_token(root.user)).delete(f"{path}/{token.pk}").status_code == 403
    assert root.delete(f"{path}/{token.pk}").status_code == 204
    assert theirs.get("/api/v1/me").status_code == 401
    assert root.get(path).json()["results"] == []
    assert root.delete(f"{PEOPLE}/{root.user.pk}/tokens/{token.pk}").status_code == 404


def acts_on(person: User) -> list[tuple[str, str, dict]]:
    own = f"{PEOPLE}/{person.pk}"
    return [
        ("post", PEOPLE, {"username": "new"}),
        ("patch", own, {"is_active": False}),
        ("post", f"{own}/password-links", {}),
        ("post", f"{own}/roles", {"role": "admin", "scope": "fleet"}),
        ("delete", f"{own}/roles/{person.bindings.get().pk}", {}),
        ("delete", f"{own}/tokens/{ApiToken.objects.get().pk}", {}),
    ]


def standing() -> tuple:
    people = sorted(User.objects.values_list("username", "is_active", "password"))
    roles = sorted(RoleBinding.objects.values_list("user", "role", "scope", "scope_id"))
    return people, roles, ApiToken.objects.filter(revoked_at=None).count(), AuditEntry.objects.count()


@pytest.mark.parametrize(("role", "status"), [("operator", 403), ("approver", 403), ("viewer", 403), (None, 404)])
def test_nobody_but_an_admin_sees_or_does_anything(pat, role, status):
    a_token(pat)
    caller = calling(a_user("eve", role=role))
    before = standing()

    for verb, path, body in acts_on(pat):
        assert getattr(caller, verb)(path, body, format="json").status_code == status, path
    for path in (PEOPLE, f"{PEOPLE}/{pat.pk}", f"{PEOPLE}/{pat.pk}/tokens"):
        assert caller.get(path).status_code == status
    assert standing() == before


def test_an_admin_of_a_cluster_gives_roles_there_and_does_nothing_else(pat):
    mine, other = a_cluster("mine"), a_cluster("other")
    pool = a_pool(mine, "a")
    a_token(pat)
    caller = calling(a_user("eve", role="admin", on=mine))
    before = standing()

    for verb, path, body in acts_on(pat):
        assert getattr(caller, verb)(path, body, format="json").status_code == 403, path
    refused = post(caller, f"{PEOPLE}/{pat.pk}/roles", {"role": "viewer", "scope": "cluster", "scope_id": other.pk})
    assert refused.status_code == 400
    assert standing() == before

    for scope, key in (("cluster", mine.pk), ("pool", pool.pk)):
        given = post(caller, f"{PEOPLE}/{pat.pk}/roles", {"role": "viewer", "scope": scope, "scope_id": key})
        assert given.status_code == 201


def test_an_admin_of_a_pool_is_told_of_no_other_place(pat):
    mine, secret = a_cluster("mine"), a_cluster("secret")
    pool, hidden = a_pool(mine, "a"), a_pool(secret, "hush")
    for place in (mine, pool, secret, hidden):
        give(pat, "viewer", on=place)
    RoleBinding.objects.create(user=pat, role="viewer", scope="cluster", scope_id=987654)
    caller = calling(a_user("eve", role="admin", on=pool))
    roles = f"{PEOPLE}/{pat.pk}/roles"

    (seen,) = (row for row in caller.get(PEOPLE).json()["results"] if row["username"] == "pat")
    asked = [
        post(caller, roles, {"role": "viewer", "scope": scope, "scope_id": key})
        for scope, key in (("cluster", secret.pk), ("cluster", 987654), ("pool", hidden.pk), ("pool", 987654))
    ]
    taken = [
        caller.delete(f"{roles}/{pk}").status_code
        for pk in pat.bindings.filter(scope_id__in=(secret.pk, 987654)).values_list("pk", flat=True)
    ]

    assert [role["on"] for role in seen["roles"]] == ["fleet", "mine", "mine/a"]
    assert caller.get(f"{PEOPLE}/{pat.pk}").json() == seen
    assert [reply.status_code for reply in asked] == [400] * 4
    assert asked[0].json()["errors"] == asked[1].json()["errors"]
    assert set(taken) == {404}


def test_tokens_of_others_are_for_admins_of_the_fleet(pat):
    rita = a_user("rita", role="admin", on=a_cluster())
    a_token(pat)
    a_token(rita)

    assert calling(rita).get(f"{PEOPLE}/{pat.pk}/tokens").status_code == 403
    assert calling(rita).get(f"{PEOPLE}/{rita.pk}/tokens").json()["count"] == 1


def test_a_token_without_the_permission_does_nothing_of_it(root, pat):  # noqa: F811
    caller = calling(token=a_token(root.user, permissions=["see"]))

    reply = caller.get(PEOPLE)

    assert (reply.status_code, "administer" in reply.json()["detail"]) == (403, True)
