import pytest
from playwright.sync_api import expect

NAME = "made-in-a-browser"


def test_a_pool_is_made_from_what_was_chosen_and_deleted_again(window):
    page = window("admin", "/segments").page
    number = page.locator("#segments .sum a.fig b").first.inner_text()
    product = page.locator("section[aria-labelledby='facet-product'] .facet a").first
    product.click()
    expect(page.locator("#segments .chip", has_text="product:")).to_be_visible()
    chosen = page.locator("#segments .sum a.fig b").first.inner_text()
    assert int(chosen) <= int(number)

    page.click("text=Make a pool of these")
    page.fill("#id_name", NAME)
    page.fill("#id_environment", "staging")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#preview")).to_contain_text(f"{chosen} node")
    expect(page.locator("#preview")).to_contain_text("Shares nodes with other pools")
    expect(page.locator("#id_environment")).to_have_value("staging")
    page.get_by_role("button", name="Save").click()

    expect(page.locator("h1")).to_have_text(NAME)
    expect(page.locator("#pool .sum")).to_contain_text(f"{chosen} GPU node")
    expect(page.locator("#pool")).to_contain_text("pool.create")

    page.click("text=Delete")
    page.click("text=Delete the pool")
    expect(page.locator(".message")).to_contain_text(f"Pool {NAME}")
    expect(page.locator("#pools")).not_to_contain_text(NAME)


@pytest.mark.nightly
def test_a_file_is_compared_before_it_is_taken_over(window):
    watched = window("admin", "/pools/file")
    page = watched.page
    text = page.locator("#text").input_value()

    page.fill("#text", f"{text}- name: from-a-file\n  selector: zone in a\n")
    with page.expect_response("**/pools/file"):
        page.get_by_role("button", name="Preview").click()
    expect(page.locator(".form-error")).to_contain_text("is not a label selector")
    watched.complaints.clear()  # the browser logs the 400
    page.fill("#text", f"{text}- name: from-a-file\n  selector: no.such/label=x\n")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("tr", has_text="from-a-file")).to_contain_text("created")
    page.get_by_role("button", name="Apply").click()

    expect(page.locator("#pools")).to_contain_text("from-a-file")
    page.goto("/pools/file")
    page.fill("#text", text)
    page.check("[name=prune]")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("tr", has_text="from-a-file")).to_contain_text("removed")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#pools")).not_to_contain_text("from-a-file")


@pytest.mark.nightly
def test_suggestions_come_after_the_page(window):
    page = window("admin", "/pools").page

    expect(page.locator("#suggestions .skeleton")).to_have_count(0)
