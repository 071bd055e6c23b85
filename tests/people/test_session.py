import pytest
from rest_framework.test import APIClient

from tests.make import a_user

PASSWORD = "correct horse battery"


@pytest.fixture
def bob_at_the_door(db) -> APIClient:
    """A client that checks CSRF, as a browser's server does."""
    user = a_user("bob", role="viewer")
    user.set_password(PASSWORD)
    user.save()
    return APIClient(enforce_csrf_checks=True)


def sign_in(client, username="bob", password=PASSWORD, **more):
    return client.post("/api/v1/session", {"username": username, "password": password}, format="json", **more)


def test_signing_in_says_who_one_is(bob_at_the_door):
    reply = sign_in(bob_at_the_door)

    assert reply.status_code == 200
    assert reply.json()["roles"] == [{"role": "viewer", "scope": "fleet", "scope_id": 0}]
    assert bob_at_the_door.get("/api/v1/me").status_code == 200


@pytest.mark.parametrize(("username", "password"), [("bob", "wrong"), ("nobody", PASSWORD), ("bob", PASSWORD + " ")])
def test_a_wrong_name_and_a_wrong_password_look_the_same(bob_at_the_door, username, password):
    reply = sign_in(bob_at_the_door, username, password)

    assert reply.status_code == 401
    assert reply.json()["detail"] == "Wrong username or password."


def test_guessing_is_slowed_down_for_that_name_only(bob_at_the_door):
    a_user("amy").set_password(PASSWORD)
    for _ in range(20):
        sign_in(bob_at_the_door, password="guess")

    slowed, other = sign_in(bob_at_the_door), sign_in(bob_at_the_door, "amy")

    assert slowed.status_code == 429
    assert int(slowed["Retry-After"]) > 0
    assert slowed.json()["detail"].startswith("Too many tries. Try again in")
    assert other.status_code == 401


def test_a_guesser_cannot_choose_the_address_it_is_counted_by(bob_at_the_door):
    replies = [
        sign_in(bob_at_the_door, password="guess", headers={"X-Forwarded-For": f"10.0.0.{number}"})
        for number in range(21)
    ]

    assert replies[-1].status_code == 429


def test_a_write_by_session_needs_the_csrf_token(bob_at_the_door):
    sign_in(bob_at_the_door)
    token = bob_at_the_door.cookies["csrftoken"].value

    without = bob_at_the_door.delete("/api/v1/session")
    with_it = bob_at_the_door.delete("/api/v1/session", headers={"X-CSRFToken": token})

    assert (without.status_code, with_it.status_code) == (403, 204)
    assert "X-CSRFToken" in without.json()["detail"]
    assert bob_at_the_door.get("/api/v1/me").status_code == 401


def test_a_foreign_form_cannot_sign_anybody_in(bob_at_the_door):
    form = f"username=bob&password={PASSWORD}"

    reply = bob_at_the_door.post("/api/v1/session", form, content_type="application/x-www-form-urlencoded")

    assert reply.status_code == 415
    assert "sessionid" not in bob_at_the_door.cookies


def test_nobody_has_nothing_to_sign_out_of(nobody):
    assert nobody.delete("/api/v1/session").status_code == 401
