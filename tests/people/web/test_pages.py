import pytest
from django.test import Client

from people.models import ApiToken, AuditEntry, User
from people.sign_in.throttle import TRIES
from tests import make
from tests.pages import Page, page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


def test_a_person_signs_in_and_lands_where_they_wanted():
    User.objects.create_user("ada", password="a long password")

    response = Client().post(
        "/sign-in?next=/plans", {"username": "ada", "password": "a long password", "next": "/plans"}
    )

    assert response["Location"] == "/plans"


def test_a_wrong_password_is_said_and_the_page_is_sound():
    response = Client().post("/sign-in", {"username": "ada", "password": "wrong"})

    assert "Please enter a correct username and password" in Page(response.content.decode()).text


def test_nobody_is_sent_away_to_another_site():
    User.objects.create_user("ada", password="a long password")

    response = Client().post(
        "/sign-in", {"username": "ada", "password": "a long password", "next": "https://elsewhere.example/"}
    )

    assert response["Location"] == "/"


def test_guessing_gets_slow():
    client = Client()
    for _ in range(TRIES):
        client.post("/sign-in", {"username": "ada", "password": "wrong"})

    response = client.post("/sign-in", {"username": "ada", "password": "wrong"})

    assert response.status_code == 429
    assert "Too many tries" in Page(response.content.decode()).text


def test_signing_out_takes_a_post():
    client = visiting(make.a_user())

    assert client.get("/sign-out").status_code == 405
    assert client.post("/sign-out")["Location"] == "/sign-in"
    assert client.get("/account").status_code == 302


def test_a_token_is_shown_once():
    user = make.a_user(role="operator")
    client = visiting(user)

    response = client.post("/account/tokens", {"name": "ci", "days": "30", "permissions": ["see"]})

    token = ApiToken.objects.get(user=user)
    assert token.hint in response.content.decode()
    assert "shown only once" in response.content.decode()
    assert "shown only once" not in page(client, "/account").text
    assert AuditEntry.objects.filter(subject=f"token:{token.pk}").exists()


def test_a_token_form_that_is_wrong_says_so():
    response = visiting(make.a_user()).post("/account/tokens", {"name": "", "days": "5000", "permissions": ["rule"]})

    assert response.status_code == 400
    assert "This field is required." in Page(response.content.decode()).text


def test_nobody_revokes_the_token_of_another():
    make.a_token(make.a_user())
    token = ApiToken.objects.get()

    assert visiting(make.a_user()).post(f"/account/tokens/{token.pk}/revocations").status_code == 404


def test_an_own_token_is_revoked():
    user = make.a_user()
    make.a_token(user)
    token = ApiToken.objects.get()

    visiting(user).post(f"/account/tokens/{token.pk}/revocations")

    token.refresh_from_db()
    assert token.revoked_at is not None


@pytest.mark.parametrize(
    ("was_on", "leads_to"),
    [
        ("http://testserver/plans/7?who=ada", "/plans/7%3Fwho%3Dada"),
        ("https://elsewhere.example/plans", "/"),
        ("", "/"),
    ],
)
def test_a_form_that_is_sent_by_who_is_signed_out_leads_back_to_the_page_it_was_on(was_on, leads_to):
    """What it was sent to takes forms alone: nobody can be shown it after they have signed in."""
    client = Client()

    reply = client.post("/plans/7/commands/halt", {"reason": "Stop."}, headers={"referer": was_on} if was_on else {})

    assert reply["Location"] == f"/sign-in?next={leads_to}"
    assert "You were signed out. The form was not processed" in page(client, reply["Location"]).text


def test_who_is_signed_in_is_not_sent_round_in_circles():
    assert visiting(make.a_user()).get("/sign-in?next=/sign-in")["Location"] == "/"
