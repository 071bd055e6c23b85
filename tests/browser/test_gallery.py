"""The states in which a page can be, each as a person sees it: loading, live, stale, lost, empty, error.

What the server or the link does is played in the browser's own network; pages and data are the real ones.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, Route, WebSocketRoute, expect

from tests.browser.conftest import Watched

SILENCE_MS = 20_000  # two heartbeats missed, and some
Socket = Callable[[WebSocketRoute], None]


@dataclass(frozen=True)
class Place:
    """A page, and the part of it that is fetched again."""

    path: str
    part: str
    element: str
    shows: str  # what stays to be seen, whatever becomes of the link


@pytest.fixture(params=["fleet", pytest.param("plan", marks=pytest.mark.nightly)])
def place(request: pytest.FixtureRequest, draft_id: int) -> Place:
    if request.param == "fleet":
        return Place("/", "**/parts/fleet/overview*", "#fleet-overview", "GPU node")
    return Place(f"/plans/{draft_id}", f"**/parts/plans/{draft_id}", "#plan", "What it disrupts")


def hears_nothing(_socket: WebSocketRoute) -> None:
    """It opens, and nobody ever speaks."""


def goes_silent(socket: WebSocketRoute) -> None:
    """The server says hello, and no more."""
    server = socket.connect_to_server()
    said: list[str | bytes] = []

    def first_only(message: str | bytes) -> None:
        if not said:
            socket.send(message)
        said.append(message)

    server.on_message(first_only)


def closes(socket: WebSocketRoute) -> None:
    socket.close(code=1012)


def open_with(watched: Watched, place: Place, socket: Socket) -> Page:
    watched.page.route_web_socket("**/live/**", socket)
    watched.page.goto(place.path)
    return watched.page


def still_shown(page: Page, place: Place) -> None:
    expect(page.locator(place.element)).to_contain_text(place.shows)


def show_loading(watched: Watched, place: Place) -> Page:
    return open_with(watched, place, hears_nothing)


def test_loading_says_that_it_connects_and_shows_what_there_is(window, place: Place):
    page = show_loading(window("viewer", None), place)

    expect(page.locator("#link")).to_have_text("connecting…")
    expect(page.locator("#link-bar")).to_be_hidden()
    still_shown(page, place)


def show_a_part_that_loads(watched: Watched) -> Page:
    watched.page.route("**/parts/plans/strip", lambda _route: None)  # never answered
    watched.page.goto("/")
    return watched.page


def test_a_part_that_loads_keeps_its_place_and_says_after_a_while_what_it_waits_for(window):
    page = show_a_part_that_loads(window("viewer", None))

    strip = page.locator("#plans-strip")
    expect(strip.locator(".skeleton").first).to_be_visible()
    expect(strip.locator(".still")).to_have_css("opacity", "0")
    expect(strip.locator(".still")).to_have_css("opacity", "1")
    expect(strip).to_contain_text("Still loading: waiting for the server.")


def test_live_says_so_and_nothing_more(window, place: Place):
    watched = window("viewer", place.path)

    expect(watched.page.locator("#link")).to_have_text("live")
    expect(watched.page.locator("#link-bar")).to_be_hidden()
    still_shown(watched.page, place)


def show_stale(watched: Watched, place: Place) -> Page:
    page = open_with(watched, place, goes_silent)
    page.wait_for_selector("#link[data-state='stale']", timeout=SILENCE_MS)
    return page


def test_stale_keeps_what_was_seen_and_says_since_when(window, place: Place):
    page = show_stale(window("viewer", None), place)

    expect(page.locator("#link")).to_contain_text("stale since")
    expect(page.locator("#link-bar")).to_contain_text("Nothing received from the server since")
    expect(page.locator("#link-bar")).to_contain_text("The page shows that moment.")
    still_shown(page, place)


def show_lost(watched: Watched, place: Place) -> Page:
    page = open_with(watched, place, closes)
    page.wait_for_selector("#link[data-state='lost']", timeout=SILENCE_MS)
    return page


def test_lost_says_when_it_tries_again_and_lets_a_person_try_now(window, place: Place):
    page = show_lost(window("viewer", None), place)

    expect(page.locator("#link")).to_have_text("link lost")
    expect(page.locator("#link-bar")).to_contain_text("next try in")
    expect(page.locator("#link-bar")).to_contain_text("Asking every 10 s instead.", timeout=SILENCE_MS)
    expect(page.locator("[data-link-retry]")).to_be_visible()
    still_shown(page, place)


def fails(route: Route) -> None:
    route.fulfill(status=500, body="It broke.")


def show_error(watched: Watched, place: Place) -> Page:
    """The part is fetched again because the link was lost for long enough to ask without it."""
    watched.page.route(place.part, fails)
    page = open_with(watched, place, closes)
    page.wait_for_selector(f"{place.element}[data-error]", timeout=2 * SILENCE_MS)
    return page


def test_an_error_is_said_over_what_was_there_and_goes_with_the_next_answer(window, place: Place):
    watched = window("viewer", None)
    page = show_error(watched, place)

    said = page.locator(place.element).get_attribute("data-error") or ""
    assert said.startswith("The server answered 500 at ")
    assert "The part shows its last state, and the page tries again." in said
    still_shown(page, place)
    page.unroute(place.part)
    expect(page.locator(f"{place.element}[data-error]")).to_have_count(0, timeout=SILENCE_MS)
    watched.complaints.clear()  # the browser logs the 500


def test_an_empty_fleet_page_says_what_keeps_it_empty_and_how_to_fill_it(window):
    page = window("viewer", "/?q=no-such-node").page

    expect(page.locator("#nodes")).to_contain_text("GPU nodes match.")
    expect(page.locator("#nodes")).to_contain_text("Clear the filter")


@pytest.mark.nightly
def test_an_empty_plan_page_says_that_nothing_was_touched(window, draft_id: int):
    page = window("viewer", f"/plans/{draft_id}").page

    expect(page.locator(".why-box")).to_contain_text("A draft")
