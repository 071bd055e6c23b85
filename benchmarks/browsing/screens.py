"""bin/screens: takes the pictures of README.md from a demo fleet, one of the fleet page and one of a promotion."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

from benchmarks.browsing.run import chromium
from demo.parts import NEWER, Fleet
from demo.promotion import Promotion, Shown
from demo.settings import ROOT
from demo.smoke import settled
from demo.stack import PASSWORD, Stack
from demo.visitor import Visitor, wait_until

FOLDER = ROOT / "docs" / "images"
SIZE: ViewportSize = {"width": 1440, "height": 900}
TROUBLE = (
    "fallen_gpu:node=gpu-h100-021,gpu=6,after_s=1",
    "hot_gpu:node=gpu-h100-019,gpu=0,celsius=92",
    "idle_holder:node=gpu-a100-007",
)
LIVELY_S = 6.0  # until parts of a page that come later are there


def main() -> None:
    """Takes both pictures and puts them in docs/images."""
    folder = Path(tempfile.mkdtemp(prefix="quarterdeck-screens-"))
    try:
        with Stack(folder, Fleet(speed=60.0, faults=TROUBLE), say=print) as stack:
            take(stack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def take(stack: Stack) -> None:
    """Drives a promotion half-way, and takes both pictures then."""
    with (
        Visitor(stack.url, "operator").sign_in(PASSWORD) as operator,
        Visitor(stack.url, "approver").sign_in(PASSWORD) as approver,
        chromium() as browser,
    ):
        objects = wait_until(lambda: settled(operator), what="a fleet that is seen", timeout_s=60.0)
        wait_until(lambda: operator.get("/api/v1/findings")["results"], what="an open finding", timeout_s=120.0)
        plan = Promotion(operator, approver, driver_object=objects["a100"], to_version=NEWER)
        plan.draft(canaries=2, at_once=2)
        plan.start()
        page = browser.new_page(viewport=SIZE, base_url=stack.url)
        sign_in(page)
        plan.drive_until(is_half_way, what="a promotion half-way")
        picture(page, f"/plans/{plan.id}", "promotion")
        picture(page, "/", "fleet")


def sign_in(page: Page) -> None:
    """Opens a session as the operator."""
    page.goto("/sign-in")
    page.fill("#id_username", "operator")
    page.fill("#id_password", PASSWORD)
    page.press("#id_password", "Enter")
    page.wait_for_url(lambda url: "sign-in" not in url)


def is_half_way(shown: Shown) -> bool:
    """Tells whether a third of the second stage has changed."""
    pool = next(stage for stage in shown["stages"] if stage["kind"] == "pool")["targets_by_state"]
    return pool.get("changed", 0) >= sum(pool.values()) / 3


def picture(page: Page, path: str, name: str) -> None:
    """Saves what a person sees of a page without scrolling."""
    page.goto(path)
    page.wait_for_timeout(LIVELY_S * 1000)
    page.screenshot(path=FOLDER / f"{name}.png")


if __name__ == "__main__":
    main()
