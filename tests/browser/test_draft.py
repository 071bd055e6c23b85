"""The order of a draft's stages is the order in which they go: changed with keys, with the mouse, and kept."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Watched


@pytest.fixture
def drafting(window) -> Watched:
    return window("operator", "/plans/new")


@pytest.fixture
def page(drafting: Watched) -> Page:
    """A draft of three stages: the canary, the pool, and one more."""
    page = drafting.page
    page.locator("a.plan-line").first.click()
    page.fill("#to_version", "580.126.20")
    page.click("text=Add a stage")
    page.locator("#stages .stage-row").last.locator("input[name$='-name']").fill("The last")
    page.locator("#stages .stage-row").last.locator("input[name$='-count']").fill("1")
    return page


def order(page: Page) -> list[str]:
    return [row.input_value() for row in page.locator("#stages input[name$='-name']").all()]


def button(page: Page, stage: str, name: str):
    rows = {row.locator("input[name$='-name']").input_value(): row for row in page.locator("#stages .stage-row").all()}
    return rows[stage].get_by_role("button", name=name)


def test_a_stage_is_moved_with_the_mouse_and_says_where_it_is_now(page: Page):
    canary, pool, last = order(page)

    button(page, last, "Earlier").click()

    assert order(page) == [canary, last, pool]
    expect(page.locator("#announcer")).to_have_text("The last is stage 2 of 3.")


@pytest.mark.nightly
def test_a_stage_is_moved_with_keys_alone_and_keeps_the_focus(page: Page):
    canary, pool, last = order(page)

    button(page, pool, "Later").focus()
    page.keyboard.press("Enter")
    assert order(page) == [canary, last, pool]
    expect(button(page, pool, "Later")).to_be_focused()

    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    assert order(page) == [canary, pool, last]
    expect(button(page, pool, "Earlier")).to_be_focused()


@pytest.mark.nightly
def test_who_removes_a_stage_is_at_the_one_that_comes_to_its_place(page: Page):
    canary, pool, last = order(page)

    button(page, pool, "Remove this stage").click()
    assert order(page) == [canary, last]
    expect(page.locator("#stages input[name$='-name']").last).to_be_focused()
    expect(page.locator("#announcer")).to_have_text(f"{pool} is removed.")

    for _ in range(2):
        page.locator("[data-remove-stage]").last.click()
    expect(page.locator("[data-add-stage]")).to_be_focused()


@pytest.mark.nightly
def test_the_ends_stay_the_ends(page: Page):
    before = order(page)

    button(page, before[0], "Earlier").click()
    button(page, before[-1], "Later").click()

    assert order(page) == before


def test_the_order_is_saved_and_there_when_the_draft_is_edited_again(page: Page):
    canary, pool, last = order(page)
    button(page, last, "Earlier").click()

    page.click("text=Save the draft and preview it")
    page.wait_for_url(re.compile(r"/plans/\d+$"))
    expect(page.locator("#plan-preview h2").nth(0)).to_have_text(f"1. {canary}")
    expect(page.locator("#plan-preview h2").nth(1)).to_have_text(f"2. {last}")
    page.click("text=Edit")

    assert order(page) == [canary, last, pool]


@pytest.mark.nightly
def test_an_order_that_cannot_be_is_refused_as_it_was_written(page: Page, drafting: Watched):
    canary, pool, last = order(page)
    button(page, canary, "Later").click()

    page.click("text=Save the draft and preview it")

    expect(page.locator(".form-error")).to_contain_text("The first stage must be a canary.")
    assert order(page) == [pool, canary, last]
    drafting.complaints.clear()  # the browser logs the 400 that carries the form


@pytest.mark.nightly
def test_why_a_button_is_locked_shows_at_a_touch(window):
    page = window("viewer", "/plans").page
    page.locator("tbody .name a").first.click()
    reason = page.locator("#why-not-abort, #why-not-discard").first
    locked = page.locator(f"[aria-describedby='{reason.get_attribute('id')}']")

    locked.click(force=True)  # a test waits for what is enabled; a finger does not

    expect(reason).not_to_have_class(re.compile("visually-hidden"))
    part = page.locator("[data-part]").filter(has=locked).first
    again = "part => htmx.ajax('GET', part.dataset.part, { source: part, target: part, swap: 'morph:outerHTML' })"
    part.evaluate(again)
    expect(reason).not_to_have_class(re.compile("visually-hidden"))  # what is fetched again hides nothing
