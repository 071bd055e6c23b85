"""Sign-in in a real Chromium at npm's `oidc-provider`, a certified provider of OpenID Connect."""

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from config.settings.oidc import GroupRole, Oidc
from tests.browser.launching import launch
from tests.health.telemetry.prometheus.a_server import a_closed_port
from tests.people.sign_in.test_single_sign_on import configure

FILES = Path(__file__).parent / "oidc_provider"
pytestmark = [pytest.mark.nightly, pytest.mark.browser, pytest.mark.npm]


@dataclass
class Certified:
    folder: Path
    client: str
    port: int = field(default_factory=a_closed_port)
    process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, key_id: str = "first") -> None:
        """Starts it with a new key."""
        command = ["node", "provider.mjs", str(self.port), self.client, key_id]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == "ready":
                return
        raise AssertionError("It did not start.")

    def stop(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("oidc-provider")
    for file in ("package.json", "package-lock.json", "provider.mjs"):
        shutil.copy(FILES / file, folder)
    subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True, timeout=180)
    return folder


@pytest.fixture
def provider(installed, transactional_db, live_server, settings) -> Iterator[Certified]:
    provider = Certified(installed, live_server.url)
    roles = (GroupRole("gpu-operators", "operator", "fleet"),)
    scopes = ("openid", "profile", "email", "groups")
    configure(settings, Oidc(provider.address, "quarterdeck", "a-secret-of-the-client", scopes=scopes, roles=roles))
    provider.start()
    yield provider
    provider.stop()


@pytest.fixture
def browse() -> Iterator:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield lambda: browser.new_context().new_page()
        browser.close()


def enter(page: Page, name: str) -> None:
    """Answers the forms of the provider: the name, and the consent where it asks."""
    page.fill("[name=login]", name)
    page.fill("[name=password]", "any")
    page.click("button")
    if page.locator("[name=prompt][value=consent]").count():
        page.click("button")


def sign_in(page: Page, site: str, name: str, *, path: str = "/sign-in/sso?next=/account") -> None:
    page.goto(f"{site}{path}")
    enter(page, name)


def test_a_person_signs_in_with_pkce_and_gets_the_roles_of_their_groups(provider, browse, live_server):
    page, asked = browse(), []
    page.on("request", lambda request: asked.append(request.url))
    sign_in(page, live_server.url, "ada")

    expect(page.locator("h1")).to_have_text("ada")
    assert any("code_challenge_method=S256" in url and "/auth?" in url for url in asked)
    expect(page.locator("main")).to_contain_text("operator of the fleet")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("nobody", "no list of groups"), ("overage", "more groups than the identity provider")],
)
def test_nobody_without_groups_is_let_in_and_the_page_says_why(name, sentence, provider, browse, live_server):
    page = browse()
    sign_in(page, live_server.url, name)

    expect(page.locator("main")).to_contain_text(sentence)
    page.goto(f"{live_server.url}/account")
    expect(page).to_have_url(f"{live_server.url}/sign-in?next=/account")


def test_one_of_201_groups_gives_its_role(provider, browse, live_server):
    page = browse()
    sign_in(page, live_server.url, "many")

    expect(page.locator("h1")).to_have_text("many")


def test_a_step_up_asks_again_and_is_recent_afterwards(provider, browse, live_server):
    page = browse()
    sign_in(page, live_server.url, "ada")
    expect(page.locator("h1")).to_have_text("ada")

    page.fill("[name=name]", "ci")
    page.click("text=Make a token")
    expect(page.locator("h1")).to_contain_text("Confirm")
    page.click("text=Single sign-on")
    enter(page, "ada")

    page.goto(f"{live_server.url}/account")
    page.fill("[name=name]", "ci")
    page.click("text=Make a token")
    expect(page.locator(".secret")).to_contain_text("qd_")


def test_a_logout_at_the_provider_ends_the_session_here(provider, browse, live_server):
    page = browse()
    sign_in(page, live_server.url, "ada")
    expect(page.locator("h1")).to_have_text("ada")

    page.goto(f"{provider.address}/session/end")
    page.click("button[value=yes]")
    page.wait_for_load_state()

    page.goto(f"{live_server.url}/account")
    expect(page).to_have_url(f"{live_server.url}/sign-in?next=/account")


def test_a_new_key_is_known_at_once_and_a_provider_that_is_down_lets_nobody_in(provider, browse, live_server):
    sign_in(page := browse(), live_server.url, "ada")
    expect(page.locator("h1")).to_have_text("ada")

    provider.stop()
    page = browse()
    page.goto(f"{live_server.url}/sign-in/sso")
    expect(page.locator("main")).to_contain_text("does not answer")

    provider.start("second")
    sign_in(page := browse(), live_server.url, "ada")
    expect(page.locator("h1")).to_have_text("ada")
