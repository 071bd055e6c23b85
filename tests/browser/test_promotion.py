"""A promotion by hand, as two people do it: drafted, previewed, started, approved, halted and put back."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched


def fits_its_pages(watched: Watched, plan: str) -> None:
    """A plan and the fleet fit a laptop, half-way through a promotion."""
    watched.page.set_viewport_size({"width": 1440, "height": 900})
    for address in (plan, "/"):
        watched.page.goto(address)
        watched.is_live()
        watched.is_drawn()
        assert watched.fits()


def draft(page: Page, *, approvals: int = 1) -> None:
    """From the page of a new plan on."""
    page.locator("a.plan-line").first.click()
    page.fill("#to_version", "580.126.20")
    for soak in page.locator("#stages input[name$='-soak_min']").all():
        soak.fill("0.1")
    page.locator("#stages input[name$='-approvals']").first.fill(str(approvals))
    page.click("text=Save the draft and preview it")
    page.wait_for_url(re.compile(r"/plans/\d+$"))


def tell(page: Page, verb: str) -> None:
    page.click(f"[data-dialog='dialog-{verb}']")
    page.fill(f"#reason-{verb}", f"To see it {verb}.")
    page.locator(f"#dialog-{verb} .ends button:not([type])").click()
    expect(page.locator(".message.is-success")).to_be_visible()


def test_a_wrong_version_is_said_beside_its_field(window):
    watched = window("operator", "/plans/new")
    page = watched.page
    page.locator("a.plan-line").first.click()

    page.fill("#to_version", "newest")
    page.click("text=Save the draft and preview it")

    expect(page.locator(".field.is-wrong")).to_contain_text("” is not a full driver version")
    expect(page.locator("#to_version")).to_have_value("newest")
    watched.complaints.clear()  # the browser logs the 400 that carries the form


def test_one_drafts_another_approves_and_the_first_halts_and_goes_back(window):
    ada, amy = window("operator", "/plans/new"), window("approver", None)
    draft(ada.page)
    plan = ada.page.url
    expect(ada.page.locator("#plan-preview")).to_contain_text("What it disrupts")

    tell(ada.page, "start")
    expect(ada.page.locator("#plan")).to_contain_text("Review approval")
    amy.page.goto("/plans")
    amy.page.locator(".asks a").first.click()
    amy.page.fill("#reason", "The canary is idle.")
    amy.page.click("button[value=approve]")
    expect(ada.page.locator(".gates").first).to_contain_text("Approved by approver.")
    expect(ada.page.locator(".stage").first).to_contain_text("changing")
    fits_its_pages(amy, plan)
    tell(ada.page, "halt")
    expect(ada.page.locator(".why-box")).to_contain_text("To see it halt.")
    expect(ada.page.locator(".armed")).to_be_visible()
    tell(ada.page, "rollback")

    expect(ada.page.locator(".plan-head .big")).to_have_text("rolled back")
    ada.page.reload()
    folded = ada.page.locator("details.wave:not([open])").first  # its node is done, or back
    over = ada.page.locator(f"#{folded.get_attribute('id')}")
    expect(over.locator("li.target")).to_have_count(0)
    over.locator("summary").click()
    expect(over.locator("li.target a").first).to_be_visible()


def test_a_viewer_sees_every_button_and_why_not(window):
    page = window("viewer", "/plans").page
    page.locator("tbody .name a").first.click()
    page.wait_for_url(re.compile(r"/plans/\d+$"))

    expect(page.locator("#plan .buttons button").first).to_be_visible()
    for button in page.locator("#plan .buttons button").all():
        assert button.get_attribute("aria-disabled") == "true"
        assert button.get_attribute("title")
