"""Sign-in in a real Chromium at a second provider of OpenID Connect, PyPI's `oidc-provider-mock`."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.browser.launching import launch
from tests.people.sign_in.test_single_sign_on import provider  # noqa: F401 - a fixture

pytestmark = [pytest.mark.nightly, pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser.new_context().new_page()
        browser.close()


def sign_in(page: Page, site: str, subject: str = "s-1") -> list[str]:
    """Returns the addresses that the browser asked for."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site}/sign-in/sso?next=/account")
    page.fill("[name=sub]", subject)
    page.click("button[type=submit]")
    page.wait_for_load_state()
    return asked


def test_a_person_signs_in_and_no_address_lets_anybody_in_again_after_the_logout(
    transactional_db, live_server, provider, page  # noqa: F811
):  # fmt: skip
    asked = sign_in(page, live_server.url)
    expect(page.locator("h1")).to_have_text("ada")
    answers = [url for url in asked if url.startswith(live_server.url) and "code=" in url]

    page.click("summary[aria-label^=Account]")
    page.click("text=Sign out")
    page.wait_for_load_state()

    assert len(answers) == 1
    page.goto(answers[0])
    expect(page.locator("h1")).not_to_have_text("ada")
    page.goto(f"{live_server.url}/account")
    expect(page).to_have_url(f"{live_server.url}/sign-in?next=/account")


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"preferred_username": "eve"}, "no list of groups"),
        ({"preferred_username": "eve", "groups": ["others"]}, "None of your groups"),
        (
            {"preferred_username": "eve", "_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {}}},
            "more groups than the identity provider",
        ),
    ],
    ids=["no groups", "no mapped group", "overage"],
)
def test_a_person_without_a_mapped_group_reads_why(
    claims, sentence, transactional_db, live_server, provider, page  # noqa: F811
):  # fmt: skip
    provider.account("s-2", **claims)
    sign_in(page, live_server.url, "s-2")

    expect(page.locator("main")).to_contain_text(sentence)
    page.goto(f"{live_server.url}/account")
    expect(page).to_have_url(f"{live_server.url}/sign-in?next=/account")
