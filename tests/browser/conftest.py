"""A real Chromium against the real stack. What a page logs as an error, or asks of another host, fails the test."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from demo.parts import Fleet
from demo.stack import PASSWORD, Stack
from demo.visitor import Visitor
from tests.browser.launching import launch
from tests.flows.recorded import MigratedStack
from tests.patience import PATIENCE_MS

expect.set_options(timeout=PATIENCE_MS)

FOLDER = Path(__file__).parent
WIDE, PHONE = {"width": 1600, "height": 1000}, {"width": 390, "height": 844}
USUAL: dict[str, Any] = {"viewport": WIDE, "reduced_motion": "reduce"}  # motion is drawn on the CPU

Sessions = dict[str, tuple[float, Any]]  # role → when it signed in, and its cookies as the browser takes them
RECENT_S = 120  # an approval asks for a sign-in of the last five minutes; a viewer approves nothing

NODES = int(os.environ.get("QUARTERDECK_TEST_NODES", "16"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder is a flow in a browser."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.flow)
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with MigratedStack(tmp_path_factory.mktemp("browser"), Fleet(nodes=NODES)) as running:
        yield running


@pytest.fixture(scope="package")
def draft_id(stack: Stack) -> int:
    with Visitor(stack.url, "operator") as ada:
        ada.sign_in(PASSWORD)
        driver = ada.all("/api/v1/driver-objects")[0]
        stages = [{"name": "Canary", "kind": "canary", "count": 1}]
        asked = {"driver_object": driver["id"], "to_version": "580.126.20", "stages": stages}
        return int(ada.post("/api/v1/plans", asked)["id"])


@pytest.fixture(scope="package", autouse=True)
def _asks_the_database_beside_playwright() -> Iterator[None]:
    """Playwright leaves its event loop in the thread of the tests, and Django would refuse to ask a database there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        yield


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


class Watched:
    """One person's window, and everything it complained of."""

    def __init__(
        self, chromium: Browser, stack: Stack, sessions: Sessions, role: str, at: str | None = "/", **given
    ) -> None:
        self.context = chromium.new_context(base_url=stack.url, **USUAL | given)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.complaints: list[str] = []
        self.asked_elsewhere: list[str] = []
        self.page.on("console", lambda said: self._hear(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda asked: self._ask(asked.url, stack.url))
        since, cookies = sessions.get(role, (0.0, None))
        if cookies and (role == "viewer" or monotonic() - since < RECENT_S):
            self.context.add_cookies(cookies)
        else:
            self._sign_in(role)
            sessions[role] = monotonic(), self.context.cookies()
        if at and self.page.url != f"{stack.url}{at}":
            self.page.goto(at)

    def _sign_in(self, role: str) -> None:
        self.page.goto("/sign-in")
        self.page.fill("#id_username", role)
        self.page.fill("#id_password", PASSWORD)
        self.page.click("main button")
        self.page.wait_for_url("**/")

    def _hear(self, kind: str, words: str) -> None:
        if kind in {"error", "warning"}:
            self.complaints.append(words)

    def _ask(self, url: str, home: str) -> None:
        if not url.startswith((home, home.replace("http", "ws", 1), "data:")):
            self.asked_elsewhere.append(url)

    def is_live(self) -> None:
        self.page.wait_for_selector("#link[data-state='live']")

    def pass_time(self, spelled: str) -> None:
        """By the page's own clock. What is so long unheard is opened anew: dropped while it opens, it complains."""
        self.page.clock.fast_forward(spelled)
        self.is_live()

    def is_drawn(self) -> None:
        """Wait until everything that the page fetches after itself is there, and its letters are."""
        self.page.wait_for_load_state("load")
        expect(self.page.locator(".skeleton, .htmx-request")).to_have_count(0)
        self.page.evaluate("document.fonts.ready.then(() => true)")

    def fits(self) -> bool:
        """Whether nothing sticks out to the right."""
        return self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture(scope="package")
def sessions() -> Sessions:
    """Of who has signed in. A password is slow to try, and so each signs in once for all windows of the stack."""
    return {}


@pytest.fixture
def window(chromium: Browser, stack: Stack, sessions: Sessions) -> Iterator[Callable[..., Watched]]:
    """Open a window as a role, at an address. A page costs a second of CPU: None for a test that opens its own."""
    opened: list[Watched] = []

    def open_as(role: str, at: str | None = "/", **given) -> Watched:
        opened.append(Watched(chromium, stack, sessions, role, at, **given))
        return opened[-1]

    yield open_as
    for watched in opened:
        watched.context.close()
        assert watched.complaints == []
        assert watched.asked_elsewhere == []
