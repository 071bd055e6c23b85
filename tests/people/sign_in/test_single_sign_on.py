"""Sign-in at a real provider of OpenID Connect in a thread. What it sends is altered on the wire, never in our code."""

import json
import ssl
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import oidc_provider_mock
import pytest
import time_machine
from django.core.exceptions import ImproperlyConfigured
from django.test import Client
from oidc_provider_mock import User as Account
from werkzeug.serving import make_server

from config.settings.oidc import GroupRole, Oidc, read_oidc, read_roles
from config.settings.variables import Variables
from people.models import AuditEntry, RoleBinding, User
from people.sign_in.single_sign_on import authenticated_at
from tests import make
from tests.health.telemetry.prometheus.a_server import a_closed_port
from tests.health.telemetry.prometheus.an_authority import Authority
from tests.pages import Page, page, visiting

pytestmark = pytest.mark.django_db
ADA = {"preferred_username": "ada", "groups": ["gpu-operators", "everybody"]}
ROLES = (GroupRole("gpu-operators", "operator", "fleet"), GroupRole("gpu-admins", "admin", "fleet"))


@dataclass
class Provider:
    """The provider. `alter_query` changes what is sent to a path, `alter_answer` what comes back."""

    app: Any = field(default_factory=oidc_provider_mock.app)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    alter_query: Callable[[str, dict[str, str]], dict[str, str]] = lambda _, query: query
    alter_answer: Callable[[str, dict[str, Any]], dict[str, Any]] | None = None
    before: dict[str, Callable[[], None]] = field(default_factory=dict)  # runs before a path is answered
    address: str = ""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        path, query = environ["PATH_INFO"], dict(parse_qsl(environ["QUERY_STRING"]))
        self.asked.append((path, query))
        self.before.get(path, lambda: None)()
        environ["QUERY_STRING"] = urlencode(self.alter_query(path, query))
        if self.alter_answer is None or path not in {"/jwks", "/userinfo", "/.well-known/openid-configuration"}:
            return self.app(environ, start_response)
        said: list[Any] = []
        body = b"".join(self.app(environ, lambda *began: said.append(began[0])))
        altered = json.dumps(self.alter_answer(path, json.loads(body))).encode()
        start_response(said[0], [("Content-Type", "application/json"), ("Content-Length", str(len(altered)))])
        return [altered]

    def account(self, subject: str, **claims: Any) -> None:
        httpx.put(f"{self.address}/users/{subject}", json=claims).raise_for_status()


@contextmanager
def served(provider: Provider, trusted: ssl.SSLContext | None = None) -> Iterator[Provider]:
    server = make_server("127.0.0.1", 0, provider, threaded=True, ssl_context=trusted)
    provider.address = f"{'https' if trusted else 'http'}://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def provider(settings) -> Iterator[Provider]:
    with served(Provider()) as provider:
        configure(settings, Oidc(provider.address, "quarterdeck", "secret", roles=ROLES))
        provider.account("s-1", **ADA)
        yield provider


def configure(settings, oidc: Oidc) -> None:
    settings.OIDC, settings.SOCIALACCOUNT_PROVIDERS = oidc, oidc.providers


def sign_in(client: Client, subject: str = "s-1", *, path: str = "/sign-in/sso") -> Any:
    """The whole way through the provider. Returns our last answer."""
    begun = client.get(path)
    if begun.status_code != 302:
        return begun
    back = httpx.post(begun["Location"], data={"sub": subject})
    returned = urlsplit(back.headers["Location"])
    return client.get(f"{returned.path}?{returned.query}")


def refusal(answer: Any) -> str:
    assert answer.status_code >= 400
    assert "_auth_user_id" not in answer.client.session
    return Page(answer.content.decode()).text


def roles_of(name: str) -> set[tuple[str, str]]:
    return set(RoleBinding.objects.filter(user__username=name).values_list("role", "scope"))


def test_a_person_of_a_mapped_group_is_let_in_with_its_roles(provider, client):
    answer = sign_in(client, path="/sign-in/sso?next=/plans")

    assert (answer.status_code, answer["Location"]) == (302, "/plans")
    assert client.get("/plans").status_code == 200
    assert roles_of("ada") == {("operator", "fleet")}
    assert not User.objects.get(username="ada").has_usable_password()
    grant = AuditEntry.objects.get(verb="role.grant")
    assert (grant.actor, grant.evidence["person"]) == ("single sign-on", "ada")


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_the_client_proves_itself_as_the_provider_asks(provider, client, settings, method):
    made = {"redirect_uris": ["http://testserver/sign-in/sso/callback"], "token_endpoint_auth_method": method}
    known = httpx.post(f"{provider.address}/oauth2/clients", json=made).json()
    own = {"client_id": known["client_id"], "client_secret": known["client_secret"], "token_auth": method}
    configure(settings, replace(settings.OIDC, **own))

    assert sign_in(client).status_code == 302


def test_the_code_is_bound_to_this_browser_by_pkce_state_and_nonce(provider, client):
    begun = client.get("/sign-in/sso")
    asked = {name: values[0] for name, values in parse_qs(urlsplit(begun["Location"]).query).items()}
    state = next(iter(client.session["socialaccount_states"].values()))[0]

    challenge = urlsafe_b64encode(sha256(state["pkce_code_verifier"].encode()).digest()).decode().rstrip("=")
    assert (asked["code_challenge_method"], asked["code_challenge"]) == ("S256", challenge)
    assert asked["nonce"] == state["nonce"]
    back = httpx.post(begun["Location"], data={"sub": "s-1"})
    returned = urlsplit(back.headers["Location"])
    other, again = Client(), f"{returned.path}?{returned.query}"
    assert "in another browser" in refusal(other.get(again))
    assert client.get(again).status_code == 302
    assert client.get(again).status_code == 400  # a state works once


def test_roles_follow_the_groups_at_each_sign_in(provider, client):
    sign_in(client)
    provider.account("s-1", **ADA | {"groups": ["gpu-admins"]})
    sign_in(Client())
    assert roles_of("ada") == {("admin", "fleet")}

    provider.account("s-1", **ADA | {"groups": ["everybody"]})
    assert "None of your groups has a role here." in refusal(sign_in(Client()))
    assert roles_of("ada") == set()


def test_an_admin_sees_whose_roles_follow_their_groups(provider, client):
    sign_in(client)
    root = visiting(make.a_user("root", role="admin"))
    ada = User.objects.get(username="ada")

    assert "operator of the fleet" in page(root, "/people").text
    assert "single sign-on" in page(root, "/people").text
    assert "each sign-in sets these roles" in page(root, f"/people/{ada.pk}").text


def test_a_group_is_mapped_to_a_pool_and_a_claim_may_be_inside_another(provider, client, settings):
    pool = make.a_pool(make.a_cluster("eu-1"), "h200")
    mapping = tuple(read_roles("/team a=b=viewer@eu-1/h200; /gone=admin@eu-9"))
    configure(settings, replace(settings.OIDC, groups_claim="realm_access.roles", roles=mapping))
    provider.account("s-1", preferred_username="ada", realm_access={"roles": ["/team a=b", "/gone"]})

    assert sign_in(client).status_code == 302

    assert set(RoleBinding.objects.values_list("role", "scope", "scope_id")) == {("viewer", "pool", pool.pk)}


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        (ADA | {"groups": ["everybody"]}, "None of your groups has a role here."),
        (ADA | {"groups": []}, "None of your groups has a role here."),
        ({"preferred_username": "ada"}, "sent no list of groups in “groups”"),
        (ADA | {"groups": "gpu-admins"}, "sent no list of groups in “groups”"),
        ({"preferred_username": "ada", "_claim_names": {"groups": "src1"}}, "more groups than the identity provider"),
        ({"groups": ["gpu-admins"]}, "sent no name in “preferred_username”"),
        (ADA | {"preferred_username": "a b\u0000"}, "cannot be used here"),
    ],
)
def test_claims_without_access_are_refused_with_the_reason(provider, client, claims, sentence):
    provider.account("s-1", **claims)

    assert sentence in refusal(sign_in(client))

    assert not User.objects.exists()


def test_claims_that_only_the_userinfo_has_are_read_there(provider, client):
    provider.account("s-1", preferred_username="ada")  # as the ID token is made
    provider.before["/userinfo"] = lambda: provider.account("s-1", **ADA)

    assert sign_in(client).status_code == 302

    assert roles_of("ada") == {("operator", "fleet")}
    assert [path for path, _ in provider.asked].count("/userinfo") == 1


def test_the_userinfo_of_another_subject_is_refused(provider, client):
    provider.account("s-1", preferred_username="ada")
    provider.alter_answer = lambda path, said: said | ({"sub": "s-2"} if path == "/userinfo" else {})

    assert "invalid: subject of the userinfo" in refusal(sign_in(client))


def test_a_local_account_of_the_same_name_is_never_taken_over(provider, client):
    make.a_user("ada", role="admin")

    assert "A local account has the name ada." in refusal(sign_in(client))


def test_another_subject_of_the_same_name_is_another_person(provider, client):
    sign_in(client)
    provider.account("s-2", **ADA)

    assert "has the name ada" in refusal(sign_in(Client(), "s-2"))


def test_a_person_who_is_switched_off_stays_out(provider, client):
    sign_in(client)
    User.objects.update(is_active=False)

    assert "switched off" in refusal(sign_in(Client()))


@pytest.mark.parametrize(
    ("parameter", "value", "wrong"),
    [("client_id", "another", "answer to the code"), ("nonce", "replayed", "nonce")],
)
def test_an_altered_request_is_refused(provider, client, parameter, value, wrong):
    provider.alter_query = lambda path, query: query | ({parameter: value} if path == "/oauth2/authorize" else {})

    assert f"invalid: {wrong}" in refusal(sign_in(client))


def test_a_token_for_another_client_is_refused(provider, client, settings):
    begun = client.get("/sign-in/sso")
    back = urlsplit(httpx.post(begun["Location"], data={"sub": "s-1"}).headers["Location"])
    settings.OIDC = replace(settings.OIDC, client_id="another")

    assert "InvalidAudienceError" in refusal(client.get(f"{back.path}?{back.query}"))


def test_a_discovery_document_of_another_issuer_is_refused(provider, client):
    provider.alter_answer = lambda _, said: said | {"issuer": "https://evil.example.com"}

    assert "issuer of the discovery document" in refusal(sign_in(client))


def test_a_token_of_another_issuer_is_refused(provider, client, settings):
    settings.OIDC = replace(settings.OIDC, issuer="https://idp.example.com")
    provider.alter_answer = lambda _, said: said | ({"issuer": "https://idp.example.com"} if "issuer" in said else {})

    assert "InvalidIssuerError" in refusal(sign_in(client))


def test_a_token_that_no_published_key_signed_is_refused_and_a_rotated_key_is_known(provider, client):
    provider.alter_answer = lambda path, said: said | ({"keys": []} if path == "/jwks" else {})
    assert "invalid: signed token" in refusal(sign_in(client))
    foreign = oidc_provider_mock.app().test_client().get("/jwks").json
    kid = httpx.get(f"{provider.address}/jwks").json()
    provider.alter_answer = lambda path, said: foreign if path == "/jwks" else said
    assert kid != foreign
    assert "invalid: signed token" in refusal(sign_in(Client()))

    provider.alter_answer = None
    provider.app = oidc_provider_mock.app(user_claims=[Account(sub="s-1", claims=ADA)])  # a new key
    assert sign_in(Client()).status_code == 302


def test_a_provider_that_is_down_lets_nobody_in_and_says_so(client, settings):
    configure(settings, Oidc(f"http://127.0.0.1:{a_closed_port()}", "quarterdeck", "secret"))

    answer = sign_in(client)

    assert answer.status_code == 503
    assert "The identity provider does not answer." in refusal(answer)


def test_the_certificate_of_the_provider_is_verified(client, settings, tmp_path):
    authority = Authority(tmp_path, "company")
    with served(Provider(), authority.serving()) as provider:
        configure(settings, Oidc(provider.address, "quarterdeck", "secret"))
        assert refusal(client.get("/sign-in/sso")).count("does not answer") == 1

        settings.OIDC = replace(settings.OIDC, ca_file=authority.ca_file)
        assert client.get("/sign-in/sso").status_code == 302


def test_one_address_cannot_flood_the_provider(provider, client, monkeypatch):
    monkeypatch.setattr("people.sign_in.throttle.TRIES_OF_AN_ADDRESS", 2)

    assert [client.get("/sign-in/sso").status_code for _ in range(3)] == [302, 302, 429]


def test_a_refusal_of_the_provider_is_shown(provider, client):
    begun = client.get("/sign-in/sso")
    back = urlsplit(httpx.post(begun["Location"], data={"action": "deny"}).headers["Location"])
    state = parse_qs(urlsplit(begun["Location"]).query)["state"][0]

    assert "refused: access_denied" in refusal(client.get(f"{back.path}?{back.query}&state={state}"))


def asked_before(monkeypatch, age_s: int) -> None:
    """The provider sends that it asked the person so long ago."""
    name = "oidc_provider_mock._storage.AuthorizationCode.get_auth_time"
    monkeypatch.setattr(name, lambda _: int(time.time()) - age_s)


def is_confirmed(client: Client) -> bool:
    """An act that needs a recent sign-in is done."""
    answer = client.post("/api/v1/tokens", {"name": "x", "permissions": ["see"]}, content_type="application/json")
    assert answer.status_code in {201, 403}
    return answer.status_code == 201


def test_a_step_up_asks_the_person_again_at_the_provider(provider, client, monkeypatch):
    asked_before(monkeypatch, 3600)  # the person was signed in at the provider
    sign_in(client)
    key = client.session.session_key
    assert not is_confirmed(client)

    assert "Single sign-on" in page(client, "/confirm").text
    assert "Password" not in page(client, "/confirm").text
    asked_before(monkeypatch, 0)
    answer = sign_in(client, path="/sign-in/sso?confirm=1&next=/plans")

    begun = [query for path, query in provider.asked if path == "/oauth2/authorize"][-1]
    assert (begun["prompt"], begun["max_age"]) == ("login", "0")
    assert answer["Location"] == "/plans"
    assert is_confirmed(client)
    assert client.session.session_key == key  # other tabs stay open


@pytest.mark.parametrize("age_s", [301, -120])
def test_a_step_up_without_a_recent_time_is_refused(provider, client, monkeypatch, age_s):
    asked_before(monkeypatch, age_s)
    sign_in(client)

    answer = sign_in(client, path="/sign-in/sso?confirm=1")

    assert (answer.status_code, "auth_time" in answer.content.decode()) == (403, True)
    assert not is_confirmed(client)


@pytest.mark.parametrize("at", [None, "1780000000", True, -1, 0, 10**12, 1.5])
def test_only_a_time_in_the_past_is_the_time_of_a_sign_in(at):
    assert authenticated_at({"auth_time": at}) is None
    assert authenticated_at({}) is None


def test_a_step_up_of_another_person_is_refused(provider, client, monkeypatch):
    asked_before(monkeypatch, 3600)
    sign_in(client)
    provider.account("s-2", **ADA | {"preferred_username": "bob"})
    asked_before(monkeypatch, 0)

    answer = sign_in(client, "s-2", path="/sign-in/sso?confirm=1")

    assert "another person" in answer.content.decode()
    assert not is_confirmed(client)
    assert client.get("/api/v1/me").json()["username"] == "ada"


def test_no_redirect_leaves_this_site(provider, client):
    assert sign_in(client, path="/sign-in/sso?next=https://evil.example.com/")["Location"] == "/"


def test_local_sign_in_is_a_way_in_until_it_is_switched_off(provider, client, settings):
    root = make.a_user("root", role="admin")
    root.set_password("a long password")
    root.save()
    form = {"username": "root", "password": "a long password"}

    assert "/sign-in/sso?next=" in Page(client.get("/sign-in").content.decode()).links
    assert client.post("/sign-in", form).status_code == 302
    settings.LOCAL_SIGN_IN = False
    other = Client()
    assert "Password" not in Page(other.get("/sign-in").content.decode()).text
    assert other.post("/sign-in", form).status_code == 403
    assert other.post("/api/v1/session", json.dumps(form), content_type="application/json").status_code == 403
    assert "_auth_user_id" not in other.session


def test_without_a_provider_there_is_no_such_page(client):
    assert client.get("/sign-in/sso").status_code == 404
    assert client.get("/sign-in/sso/callback").status_code == 404


def test_a_session_ends_on_time_however_much_it_is_used(client):
    with time_machine.travel(make.NOON, tick=False) as clock:
        client.force_login(make.a_user("ada", role="viewer"))
        clock.shift(timedelta(hours=11))
        session = client.session
        session["used"] = "yes"
        session.save()
        assert client.get("/plans").status_code == 200
        clock.shift(timedelta(hours=2))
        assert client.get("/plans").status_code == 302


@pytest.mark.parametrize(
    "given",
    [
        {"ISSUER": "http://idp.example.com", "CLIENT_ID": "q", "CLIENT_SECRET": "s"},
        {"ISSUER": "https://idp.example.com", "CLIENT_ID": "q"},
        {"ISSUER": "https://idp.example.com", "CLIENT_SECRET": "s"},
        {"ISSUER": "https://idp", "CLIENT_ID": "q", "CLIENT_SECRET": "s", "TOKEN_AUTH": "none"},
        {"ROLES": "gpu-admins=root"},
        {"ROLES": "gpu-admins"},
    ],
)
def test_wrong_settings_stop_the_start(monkeypatch, given):
    for name, value in given.items():
        monkeypatch.setenv(f"QUARTERDECK_OIDC_{name}", value)

    with pytest.raises(ImproperlyConfigured):
        read_oidc(Variables())


def test_the_secret_is_read_from_a_file_and_never_printed(monkeypatch, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("s3cret\n")
    given = {"ISSUER": "https://idp.example.com/", "CLIENT_ID": "q", "CLIENT_SECRET_FILE": str(secret)}
    for name, value in given.items():
        monkeypatch.setenv(f"QUARTERDECK_OIDC_{name}", value)

    oidc = read_oidc(Variables())

    assert (oidc.client_secret, oidc.issuer) == ("s3cret", "https://idp.example.com")
    assert "s3cret" not in repr(oidc)
