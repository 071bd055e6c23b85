"""Every page in both themes, held against the rules of WCAG that a machine can judge."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from config import menu
from tests.browser.conftest import PHONE, WIDE
from tests.variants import nightly_but_first

RULES = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}
OF_A_THEME = {"type": "rule", "values": ["color-contrast"]}  # the only rule that a theme can break


def violations(page, rules=RULES) -> list[str]:
    if not page.evaluate("'axe' in window"):  # it is half a megabyte: once for both themes of a page
        page.evaluate(Axe().axe_script)
    options = {"preload": False, "runOnly": rules, "resultTypes": ["violations"]}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [f"{each['id']}: {node['html'][:160]}" for each in found for node in each["nodes"]]


@pytest.mark.parametrize("pages", nightly_but_first(["most read", "all"]))
def test_no_page_breaks_a_rule(window, draft_id: int, pages: str):
    """By day, those that are read most: a page is half a second of axe for each theme, and their parts are shared."""
    watched = window("admin", viewport=WIDE)
    watched.is_live()
    a_node = watched.page.locator("#nodes tbody tr .name a").first.get_attribute("href")
    a_cluster = watched.page.locator("#fleet-clusters a[href^='/clusters/']").first.get_attribute("href")
    paths = ["/", "/findings", a_node, f"/plans/{draft_id}"]
    if pages == "all":
        in_menu = [entry.href for group in menu.GROUPS for entry in group.entries if not entry.anchor]
        paths = [*in_menu, a_node, f"{a_node}/gpus/0", a_cluster, f"/plans/{draft_id}", f"/plans/{draft_id}/edit"]

    broken = {}
    for path in paths:
        watched.page.goto(path)
        watched.page.wait_for_load_state("networkidle")
        if not watched.fits():
            broken[path, "wide"] = ["It sticks out to the right."]
        for theme, rules in (("light", RULES), ("dark", OF_A_THEME)):
            watched.page.emulate_media(color_scheme=theme)
            expect(watched.page.locator("html")).to_have_attribute("data-bs-theme", theme)
            if found := violations(watched.page, rules):
                broken[path, theme] = found

    assert broken == {}


def test_the_help_and_a_phone_break_no_rule_either(window):
    watched = window("viewer", viewport=PHONE)
    watched.is_live()
    watched.page.keyboard.press("?")
    watched.page.wait_for_selector("#help[open]")

    assert violations(watched.page) == []
