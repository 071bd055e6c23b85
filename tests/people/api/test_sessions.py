import pytest

from people.models import BrowserSession
from tests import make
from tests.callers import calling

pytestmark = pytest.mark.django_db


def ids(client, path: str = "/api/v1/sessions") -> list[str]:
    return [session["id"] for session in client.get(path).json()["results"]]


def test_a_person_lists_and_ends_own_sessions(bob):
    other = calling(bob.user)
    third = calling(bob.user)
    listed = bob.get("/api/v1/sessions").json()["results"]
    assert sorted(session["is_current"] for session in listed) == [False, False, True]
    assert not any(session.session_key in str(listed) for session in BrowserSession.objects.all())
    of_other = next(
        session["id"] for session in other.get("/api/v1/sessions").json()["results"] if session["is_current"]
    )

    assert bob.delete(f"/api/v1/sessions/{of_other}").status_code == 204
    assert other.get("/api/v1/me").status_code == 401
    assert bob.delete(f"/api/v1/sessions/{of_other}").status_code == 404
    assert bob.delete("/api/v1/sessions").status_code == 204
    assert (third.get("/api/v1/me").status_code, bob.get("/api/v1/me").status_code) == (401, 200)


def test_nobody_ends_a_session_of_another_person(bob, amy):
    (of_bob,) = ids(bob)

    assert amy.delete(f"/api/v1/sessions/{of_bob}").status_code == 404
    assert bob.get("/api/v1/me").status_code == 200


def test_a_token_ends_no_session(bob):
    secret = make.a_token(bob.user)
    (of_bob,) = ids(bob)

    assert calling(token=secret).delete(f"/api/v1/sessions/{of_bob}").status_code == 403
    assert calling(token=secret).delete("/api/v1/sessions").status_code == 403


def test_an_admin_ends_one_session_or_all_of_a_person(root, bob, ada):
    second = calling(bob.user)
    path = f"/api/v1/people/{bob.user.pk}/sessions"
    (first, *_) = listed = ids(root, path)
    assert len(listed) == 2
    assert ada.get(path).status_code == 403

    assert root.delete(f"{path}/{first}").status_code == 204
    assert root.delete(f"{path}/{first}").status_code == 404
    assert root.delete(path).status_code == 204
    assert {bob.get("/api/v1/me").status_code, second.get("/api/v1/me").status_code} == {401}
