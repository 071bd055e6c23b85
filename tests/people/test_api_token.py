from datetime import timedelta

import pytest
import time_machine
from django.core.exceptions import ImproperlyConfigured

from config.settings.token_peppers import read_token_peppers
from config.settings.variables import Variables
from people.models import ApiToken, AuditEntry
from people.models.api_token import FORMAT, plain_digest_of
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
    owner.token = ApiToken.issue(user=owner, name="all", permissions=list(Permission), now=NOON, expires_at=None)[0]

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


def test_a_token_is_found_by_its_key_id_and_right_only_as_a_whole(now, db, django_assert_num_queries):
    secret = a_token(a_user(role="viewer"))
    parts = FORMAT.fullmatch(secret)
    forged = a_token(a_user(role="viewer"))[13:]

    assert ApiToken.of(secret, now=NOON).key_id == parts["key_id"]
    assert ApiToken.of(secret[:13] + forged, now=NOON) is None
    with django_assert_num_queries(1):  # no key id is looked up: the checksum is wrong
        assert ApiToken.of(secret[:-1] + ("0" if secret[-1] != "0" else "1"), now=NOON) is None


def test_a_forged_secret_under_a_known_key_id_is_nobody(now, db, monkeypatch):
    secret = a_token(a_user(role="viewer"))
    ApiToken.objects.update(digest=plain_digest_of(secret))  # as somebody who reads and writes rows could

    assert ApiToken.of(secret, now=NOON) is None


def test_a_token_survives_new_peppers_and_ends_with_its_own(now, db, settings):
    first = a_token(a_user(role="viewer"))
    settings.TOKEN_PEPPERS = {"one": "p" * 50}
    second = a_token(a_user(role="viewer"))
    settings.TOKEN_PEPPERS = {"two": "q" * 50, "one": "p" * 50}
    third = a_token(a_user(role="viewer"))

    def valid():
        return [calling(token=each).get("/api/v1/me").status_code for each in (first, second, third)]

    assert list(ApiToken.objects.order_by("pk").values_list("pepper_id", flat=True)) == ["secret-key", "one", "two"]
    assert valid() == [200, 200, 200]
    settings.TOKEN_PEPPERS = {"two": "q" * 50}
    assert valid() == [200, 401, 200]
    settings.SECRET_KEY = "another"
    assert valid() == [401, 401, 200]


def test_a_token_of_an_earlier_version_works_until_it_ends(now, db):
    secret = "qd_" + "a-_" * 14 + "x"
    owner = a_user("ada", role="viewer")
    ApiToken.objects.create(
        user=owner, name="old", digest=plain_digest_of(secret), hint=secret[:8], permissions=["see"], created_at=NOON
    )

    assert calling(token=secret).get("/api/v1/me").json()["username"] == "ada"
    assert calling(token=secret[:-1]).get("/api/v1/me").status_code == 401


def test_a_token_shows_when_and_from_where_it_was_used(now, db):
    owner = a_user("ada", role="viewer")

    me = calling(token=a_token(owner)).get("/api/v1/me").json()

    assert me["token"]["name"] == "test"
    (listed,) = calling(owner).get("/api/v1/tokens").json()["results"]
    assert (listed["last_used_at"], listed["last_used_from"]) == ("2026-11-21T12:00:00Z", "127.0.0.1")
    assert calling(owner).get("/api/v1/me").json()["token"] is None


def test_peppers_are_read_from_a_variable_or_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("QUARTERDECK_TOKEN_PEPPERS", f"b:{'q' * 50},a:{'p' * 50}")
    assert read_token_peppers(Variables()) == {"b": "q" * 50, "a": "p" * 50}

    file = tmp_path / "peppers"
    file.write_text(f"2026-12:{'r' * 50}\na:{'p' * 50}\n")
    monkeypatch.setenv("QUARTERDECK_TOKEN_PEPPERS_FILE", str(file))
    assert list(read_token_peppers(Variables())) == ["2026-12", "a"]


@pytest.mark.parametrize(
    "text", ["p" * 60, f"a:{'p' * 49}", f"secret-key:{'p' * 50}", f"a:{'p' * 50},a:{'q' * 50}", f":{'p' * 50}"]
)
def test_wrong_peppers_stop_the_start_and_are_not_printed(monkeypatch, text):
    monkeypatch.setenv("QUARTERDECK_TOKEN_PEPPERS", text)

    with pytest.raises(ImproperlyConfigured) as error:
        read_token_peppers(Variables())

    assert "ppp" not in str(error.value)
