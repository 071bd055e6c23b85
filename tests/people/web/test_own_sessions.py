"""The list of sessions, on the page of the own account and on a person's page."""

import pytest

from people.models import AuditEntry, BrowserSession
from tests import make
from tests.pages import Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def path_of(client) -> str:
    return f"sessions/{BrowserSession.objects.get(pk=client.session.session_key).public_id}/endings"


def test_a_person_ends_one_session_and_then_all_others():
    ada = make.a_user("ada", role="viewer")
    here, there, elsewhere = visiting(ada), visiting(ada), visiting(ada)
    assert page(here, "/account").text.count("this session") == 1

    here.post(f"/account/{path_of(there)}")
    assert there.get("/account").status_code == 302
    assert elsewhere.get("/account").status_code == 200

    ended = here.post("/account/sessions/endings", follow=True)
    assert "1 other session ended." in Page(ended.content.decode()).text
    assert elsewhere.get("/account").status_code == 302
    assert here.get("/account").status_code == 200
    assert [entry.verb for entry in AuditEntry.objects.all()] == ["session.end", "session.end"]


def test_a_person_ends_no_session_of_others():
    eve, ada = visiting(make.a_user("eve", role="operator")), visiting(make.a_user("ada", role="viewer"))

    eve.post(f"/account/{path_of(ada)}")

    assert ada.get("/account").status_code == 200


@pytest.mark.parametrize("which", ["one", "all"])
def test_an_admin_of_the_fleet_ends_the_sessions_of_a_person(which):
    ada = make.a_user("ada", role="operator")
    browser, root = visiting(ada), visiting(make.a_user("root", role="admin"))
    cluster_admin = visiting(make.a_user("carl", role="admin", on=make.a_cluster()))
    path = f"/people/{ada.pk}/{path_of(browser) if which == 'one' else 'sessions/endings'}"

    cluster_admin.post(path)
    assert "Sessions" not in page(cluster_admin, f"/people/{ada.pk}").text
    assert browser.get("/account").status_code == 200

    assert "End all sessions" in page(root, f"/people/{ada.pk}").text
    root.post(path)
    assert browser.get("/account").status_code == 302
    assert root.get("/account").status_code == 200
