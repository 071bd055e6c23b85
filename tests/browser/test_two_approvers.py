"""A stage that needs two people: each in a browser of their own, neither of whom loads a page again."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_promotion import draft, tell


def open_request(page: Page, reason: str) -> None:
    page.goto("/approvals")
    page.locator(".asks a").first.click()
    page.fill("#reason", reason)


@pytest.mark.nightly
def test_two_approvers_let_a_stage_go_and_neither_alone(window):
    ada, amy, ann = window("operator", "/plans/new"), window("approver", None), window("admin", None)
    draft(ada.page, approvals=2)
    tell(ada.page, "start")
    expect(ada.page.locator("#plan")).to_contain_text("Review approval")
    open_request(amy.page, "The canary is idle.")
    open_request(ann.page, "It is a quiet night.")

    amy.page.click("button[value=approve]")

    voters = ann.page.locator("table.voters")
    expect(voters).to_contain_text("approver")
    expect(ann.page.locator("#reason")).to_have_value("It is a quiet night.")
    expect(ada.page.locator(".gates").first).to_contain_text("1 of 2")
    expect(ada.page.locator(".stage").first).not_to_contain_text("changing")

    ann.page.click("button[value=approve]")

    expect(ada.page.locator(".stage").first).to_contain_text("changing")
    tell(ada.page, "halt")
    tell(ada.page, "rollback")
    expect(ada.page.locator(".plan-head")).to_contain_text("rolled back")
