from datetime import timedelta

import pytest
import time_machine

from people.models import ApiToken, AuditEntry
from people.rights import Permission, scope_of
from people.roster import accounts
from tests.callers import calling
from tests.make import NOON, a_cluster, a_node, a_token, a_user


def test_a_token_signs_its_owner_in(now, db):
    client = calling(token=a_token(a_user("ada", role="operator")))

    assert client.get("/api/v1/me").json()["username"] == "ada"


@pytest.mark.parametrize("header", ["Bearer qd_wrong", "Bearer ", "Bearer", "bearer é"])
def test_a_token_that_is_not_ours_is_nobody(nobody, header):
    reply = nobody.get("/api/v1/me", HTTP_AUTHORIZATION=header)

    assert reply.status_code == 401
    assert reply["WWW-Authenticate"] == "Bearer"


def test_a_token_ends_at_the_second_it_says(db):
    client = calling(token=a_token(a_user(role="viewer"), expires_at=NOON + timedelta(hours=1)))

    with time_machine.travel(NOON + timedelta(minutes=59, seconds=59), tick=False):
        assert client.get("/api/v1/me").status_code == 200
    with time_machine.travel(NOON + timedelta(hours=1), tick=False):
        assert client.get("/api/v1/me").status_code == 401


def test_a_token_dies_with_its_owner(now, db):
    owner = a_user(role="viewer")
    client = calling(token=a_token(owner))
    owner.is_active = False
    owner.save()

    assert client.get("/api/v1/me").status_code == 401


def test_a_token_may_only_what_it_was_issued_for(now, db):
    a_node(a_cluster())
    client = calling(token=a_token(a_user(role="admin"), permissions=["stop"]))

    assert client.get("/api/v1/nodes").json()["count"] == 0
    assert not client.get("/api/v1/me").json()["permissions"]["run"]["everywhere"]
    assert client.get("/api/v1/me").json()["permissions"]["stop"]["everywhere"]


@pytest.mark.parametrize("permission", Permission)
def test_a_token_never_gives_its_owner_more(db, permission):
    owner = a_user()
    owner.token = ApiToken.issue(user=owner, name="all", permissions=list(Permission), now=NOON)[0]

    assert scope_of(owner, permission).nowhere


def test_the_secret_is_shown_once_and_kept_nowhere(ada):
    made = ada.post("/api/v1/tokens", {"name": "ci", "permissions": ["see"]}, format="json").json()

    (listed,) = ada.get("/api/v1/tokens").json()["results"]

    assert made["secret"].startswith(made["hint"])
    assert "secret" not in listed
    assert made["secret"] not in str(ApiToken.objects.values().get())


def test_a_token_lives_ninety_days_unless_told_otherwise(ada):
    def expires_at(**asked):
        reply = ada.post("/api/v1/tokens", {"name": "ci", "permissions": ["see"], **asked}, format="json")
        return reply.json()["expires_at"]

    assert expires_at() == "2027-02-19T12:00:00Z"
    assert expires_at(expires_at=None) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("permissions", []),
        ("permissions", ["fly"]),
        ("permissions", "see"),
        ("expires_at", "2026-11-21T11:59:00Z"),
    ],
)
def test_what_cannot_be_a_token_is_refused(ada, field, value):
    reply = ada.post("/api/v1/tokens", {"name": "ci", "permissions": ["see"], field: value}, format="json")

    assert reply.status_code == 400
    assert reply.json()["errors"][0]["field"] == field
    assert ApiToken.objects.count() == 0


def test_a_token_cannot_make_its_successor(now, db):
    client = calling(token=a_token(a_user(role="admin")))

    assert client.post("/api/v1/tokens", {"name": "x", "permissions": ["see"]}, format="json").status_code == 403


def test_a_revoked_token_is_nobody_at_once(now, db):
    owner = a_user(role="viewer")
    secret = a_token(owner)
    token = ApiToken.objects.get()

    assert calling(owner).delete(f"/api/v1/tokens/{token.pk}").status_code == 204
    assert calling(token=secret).get("/api/v1/me").status_code == 401


def test_anothers_token_does_not_exist(ada, bob, nobody):
    a_token(ada.user)
    place = f"/api/v1/tokens/{ApiToken.objects.get().pk}"

    assert bob.delete(place).status_code == bob.get(place).status_code == 404
    assert nobody.delete(place).status_code == 401
    assert ApiToken.objects.get().revoked_at is None


def test_revoking_twice_is_recorded_once(db):
    owner = a_user("ada")
    token, _ = accounts.issue(owner=owner, actor="ada", name="ci", permissions=["see"], expires_at=None, now=NOON)

    for _ in range(2):
        accounts.revoke(token, actor="ada", now=NOON)

    assert list(AuditEntry.objects.values_list("verb", flat=True)) == ["token.issue", "token.revoke"]


def test_a_busy_token_does_not_write_with_every_request(now, db, django_assert_num_queries):
    client = calling(token=a_token(a_user(role="viewer")))
    client.get("/api/v1/me")

    with django_assert_num_queries(2):  # the token with its owner, the roles
        client.get("/api/v1/me")
