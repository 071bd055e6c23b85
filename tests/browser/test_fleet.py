import pytest
from playwright.sync_api import expect

from config import menu
from tests.browser.conftest import PHONE
from tests.browser.outside import cordoned, patch_node
from tests.variants import nightly_but_first


def first_node(page) -> str:
    return page.locator("#nodes tbody tr .name a").first.inner_text()


def test_a_cordon_from_outside_shows_without_a_reload(stack, window):
    watched = window("viewer")
    watched.is_live()
    name = first_node(watched.page)

    row = watched.page.locator("#nodes tbody tr", has_text=name)
    with cordoned(stack, name):
        expect(row).to_contain_text("cordoned")
        expect(watched.page.locator("#announcer")).not_to_be_empty()
    expect(row).not_to_contain_text("cordoned")


def test_the_filter_is_in_the_url_and_survives_a_reload(window):
    page = window("viewer").page
    name = first_node(page)

    page.fill("#q", name)
    expect(page.locator("#nodes tbody tr")).to_have_count(1)
    page.wait_for_url(f"**/?q={name}")
    page.reload()

    expect(page.locator("#q")).to_have_value(name)
    expect(page.locator("#nodes tbody tr")).to_have_count(1)


def test_a_filter_that_finds_nothing_can_be_cleared(window):
    page = window("viewer").page

    page.fill("#q", "no-such-node")
    page.click("text=Clear the filter")

    expect(page.locator("#nodes tbody tr")).not_to_have_count(0)


def test_what_somebody_types_is_not_overwritten_by_a_refresh(stack, window):
    watched = window("viewer")
    watched.is_live()
    page = watched.page
    name = first_node(page)
    page.fill("#q", "gpu")

    with page.expect_response("**/parts/fleet/nodes*"):
        patch_node(stack, name, {"metadata": {"labels": {"example.com/touched": "yes"}}})

    expect(page.locator("#q")).to_have_value("gpu")
    expect(page.locator("#q")).to_be_focused()


def test_keys_are_visible_controls(window):
    page = window("viewer").page
    page.keyboard.press("/")

    expect(page.locator("#q")).to_be_focused()


def test_the_theme_is_kept(window):
    page = window("viewer", color_scheme="light").page

    page.click("[data-theme-toggle]")
    page.reload()

    assert page.evaluate("document.documentElement.dataset.bsTheme") == "dark"


def test_a_lost_link_is_said_and_comes_back(stack, window):
    watched = window("viewer")
    watched.is_live()
    page = watched.page

    stack.kill("web")
    expect(page.locator("#link")).to_have_attribute("data-state", "lost")
    expect(page.locator("#link-bar")).to_contain_text("Live link lost")
    expect(page.locator("#nodes tbody tr")).not_to_have_count(0)
    stack.restart("web")
    # No click that waits for the button: where the web comes up slowly, the link is back by itself before that.
    page.locator("[data-link-retry]").dispatch_event("click")

    watched.is_live()
    expect(page.locator("#link-bar")).to_be_hidden()
    watched.complaints.clear()  # the browser itself logs every refused connection


def test_a_redis_that_restarts_is_said_and_got_over(stack, window):
    """The sockets stay open when Redis goes: only the missing heartbeat tells."""
    watched = window("viewer")
    watched.is_live()
    page = watched.page
    name = first_node(page)

    stack.kill("valkey")
    page.wait_for_selector("#link:is([data-state='stale'], [data-state='lost'])")
    row = page.locator("#nodes tbody tr", has_text=name)
    with cordoned(stack, name):
        stack.restart("valkey")
        page.wait_for_selector("#link[data-state='live']")
        expect(row).to_contain_text("cordoned")
    expect(row).not_to_contain_text("cordoned")
    watched.complaints.clear()  # the browser itself logs what the server closed


LINKS = ["a[href^='/clusters/']", "a[href^='/pools/']", "a[href^='/nodes/']"]  # the first of each on the fleet page


# By day, those that are read most.
ON_A_PHONE = {
    "most read": ("/", "/findings", "/plans", "/plans/new"),
    "others": ("/gpus", "/pools", "/segments", "/clusters", "/status", "/pools/new", "/pools/file", "/account"),
}


@pytest.mark.parametrize("pages", nightly_but_first(ON_A_PHONE))
def test_every_page_fits_a_phone(window, pages: str):
    """Wide pages are in test_accessibility."""
    watched = window("admin", viewport=PHONE, color_scheme="dark")
    linked = [watched.page.locator(link).first.get_attribute("href") for link in LINKS]

    for path in (*ON_A_PHONE[pages], *linked):
        watched.page.goto(path)
        watched.is_drawn()
        assert watched.fits(), path
        for words in ("Make it", "Pools as a file"):  # a button's words stay on one line
            for button in watched.page.get_by_role("link", name=words).all():
                assert button.bounding_box()["height"] < 50, f"{words} on {path}"


def test_each_place_of_the_menu_is_on_the_screen_of_a_phone(window):
    page = window("viewer", viewport=PHONE).page

    for group in menu.GROUPS:
        page.get_by_label("Menu").get_by_role("link", name=group.title).click()
        for link in page.locator(".places a").all():
            box = link.bounding_box()
            assert box["x"] >= 0, link.inner_text()
            assert box["x"] + box["width"] <= PHONE["width"], link.inner_text()
