"""What plots do while answers come late, fail, or are about something else. The answers are the test's own."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import Watched
from tests.browser.outside import look_away, look_back, tell

OWN = re.compile(r"/api/v1/nodes/\d+/telemetry/history")
THE_TWIN = re.compile(r"/parts/nodes/\d+/comparable$")
ITS_TWIN, A_FINDING, ANOTHER = "/api/v1/comparable", "/api/v1/findings/1/telemetry", "/api/v1/findings/2/telemetry"
STOP = "<button data-alone>Stop comparing</button>"
TWIN = f'<div data-comparable="{ITS_TWIN}" data-name="other-gpu"><p><span data-told>Compared.</span> {STOP}</p></div>'
A_SECTION = """([about, until]) => {
  const fresh = `<section id="finding-plots" data-own="${about}" data-history="${about}" data-until="${until}">
    <span data-source></span><p data-said>Loading…</p>
    <div class="plot-grid" data-plots></div><ul data-marks></ul></section>`;
  const old = document.getElementById("finding-plots");
  if (old) Idiomorph.morph(old, fresh, { morphStyle: "outerHTML" });
  else document.getElementById("main").insertAdjacentHTML("beforeend", fresh);
  const detail = { target: document.body };
  document.body.dispatchEvent(new CustomEvent("htmx:afterSwap", { bubbles: true, detail }));
}"""

# How many pixels of a plot have the first line's colour, and not the grid's.
COLOURED = """(canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let at = 0; at < data.length; at += 4) found += data[at] === 0 && data[at + 1] === 0x72 && data[at + 2] === 0xb2;
  return found;
}"""


def said(window: str, *, age: timedelta = timedelta(0), value: float = 61, **given: Any) -> dict[str, Any]:
    """An answer whose newest instant is so old."""
    last = (datetime.now(UTC) - age).timestamp()
    line = {"name": "GPU 0", "values": [60, value], "is_subject": False}
    plot = {"key": "temperature_celsius", "title": "Temperature", "unit": "°C", "lines": [line], "left_out": 0}
    return {
        "window": window, "times": [last - 15, last], "trouble": "", "plots": [{**plot, "limits": []} | given],
        "not_drawn": [], "not_exported": [], "not_kept": [], "drawn_from": "prometheus", "add_source_href": "",
        "silent_since": None, "marks": [], "marks_left_out": 0,
    }  # fmt: skip


class Answers:
    """Of histories, by their addresses: what is asked, and what is held back until it is let go."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.held: list[Route] = []

    def give(self, address: str | re.Pattern[str], answer: Callable[[str], dict[str, Any] | None]) -> None:
        """By the window that is asked for. None: it is held back."""
        pattern = address if isinstance(address, re.Pattern) else re.compile(re.escape(address))

        def fulfil(route: Route) -> None:
            self.asked.append(route.request.url)
            told = answer(route.request.url.partition("window=")[2])
            if told is None:
                self.held.append(route)
            else:
                route.fulfill(json=told)

        self.page.route(pattern, fulfil)

    def let_go(self, told: dict[str, Any]) -> None:
        """What is held back, and wait until the page has had time to draw it."""
        for route in self.held:
            with self.page.expect_response(route.request.url):
                route.fulfill(json=told)
        self.held.clear()
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def number(self, address: str) -> int:
        return sum(address in url for url in self.asked)


@pytest.fixture
def looking(window) -> Watched:
    """At a node of the fleet, of which nothing is fetched yet."""
    watched = window("viewer")
    watched.is_live()
    watched.page.route(THE_TWIN, lambda route: route.fulfill(body=TWIN))
    return watched


@pytest.fixture
def answers(looking: Watched) -> Answers:
    return Answers(looking.page)


def open_a_node(page: Page) -> None:
    page.locator("#nodes tbody tr .name a").first.click()
    page.wait_for_selector("#link[data-state='live']")


def drawn(page: Page, window: str = "") -> None:
    expect(page.get_by_role("img", name=f"over {window}" if window else "Temperature")).to_have_count(1)


def test_what_goes_on_is_asked_for_again_however_old_its_newest_instant(looking, answers):
    page = looking.page
    answers.give(OWN, lambda window: said(window, age=timedelta(minutes=20)))
    page.clock.install()
    open_a_node(page)
    drawn(page)

    with page.expect_request(OWN):
        looking.pass_time("01:02")


class Followed:
    """The plots of a node as a server that has each instant answers: all of them, or those since a time."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[str] = []
        self.given: dict[str, Any] = {}
        self.whole = said("1h")
        (self.began, _), self.values = self.whole["times"], [60.0, 61.0]
        page.route(OWN, self._answer)
        open_a_node(page)
        drawn(page, "1h")
        self.cluster = page.get_attribute("#node-plots", "data-cluster")

    def _answer(self, route: Route) -> None:
        self.asked.append(route.request.url)
        since = re.search(r"since=(\d+)", route.request.url)
        left_out = round((float(since[1]) - self.began) / 15) if since else 0
        plot = self.whole["plots"][0]
        lines = [{**plot["lines"][0], "values": self.values[left_out:]}]
        times = [self.began + 15 * at for at in range(left_out, len(self.values))]
        route.fulfill(json={**self.whole, "times": times, "plots": [{**plot, "lines": lines}]} | self.given)

    def comes(self, value: float, **given: Any) -> None:
        """The next instant, and the message that it is there."""
        self.values.append(value)
        self.given = given
        tell(self.page, topic=f"telemetry-{self.cluster}", seq=1)


def test_newer_telemetry_is_fetched_since_what_is_drawn_and_drawn_on(looking):
    page = looking.page
    followed = Followed(page)
    page.evaluate("window.canvas = document.querySelector('#node-plots canvas')")

    followed.comes(75)

    expect(page.locator("#node-plots .plot-values")).to_have_text("GPU 0 75")
    expect(page.get_by_role("img", name="1 in all from 61 to 75 °C")).to_have_count(1)
    assert all("since=" in url for url in followed.asked[1:])
    assert page.evaluate("canvas.isConnected")


@pytest.mark.nightly
def test_what_comes_while_the_first_answer_is_awaited_is_fetched_after_it(looking, answers):
    page = looking.page
    answers.give(OWN, lambda _: None if len(answers.asked) == 1 else said("1h"))
    page.clock.install()
    open_a_node(page)
    cluster = page.get_attribute("#node-plots", "data-cluster")
    for _ in range(3):
        tell(page, topic=f"telemetry-{cluster}", seq=1)
    page.clock.run_for(2000)

    assert len(answers.asked) == 1
    with page.expect_request(re.compile("since=")):
        answers.let_go(said("1h"))


@pytest.mark.nightly
def test_what_no_longer_fits_what_is_drawn_is_fetched_as_a_whole(looking):
    page = looking.page
    followed = Followed(page)

    followed.comes(75, plots=said("1h", title="Power", key="power_watts")["plots"])

    expect(page.get_by_role("img", name="Power")).to_have_count(1)
    assert "since=" not in followed.asked[-1]


def test_plots_stay_when_their_source_falls_silent_and_are_said_to_be_of_before(looking):
    page = looking.page
    followed = Followed(page)

    followed.comes(75, plots=[], trouble="The cluster's Prometheus returns no history.")

    expect(page.locator("#node-plots [data-said]")).to_contain_text("returns no history. The plots are from ")
    drawn(page, "1h")

    followed.comes(76)

    expect(page.locator("#node-plots .plot-values")).to_have_text("GPU 0 76")
    expect(page.locator("#node-plots [data-said]")).to_be_hidden()


@pytest.mark.nightly
def test_telemetry_of_another_cluster_and_of_a_tab_that_nobody_sees_is_not_fetched(looking):
    page = looking.page
    page.clock.install()
    followed = Followed(page)
    known = len(followed.asked)

    tell(page, topic="telemetry-999", seq=1)
    look_away(page)
    followed.comes(75)
    page.clock.fast_forward("00:03")
    page.evaluate("fetch('/')")  # what was asked for before is known by then

    assert len(followed.asked) == known
    look_back(page)
    expect(page.locator("#node-plots .plot-values")).to_have_text("GPU 0 75")


def test_what_a_plan_did_is_marked_and_leads_to_its_plan(looking, answers):
    page = looking.page
    mark = {"at": datetime.now(UTC).isoformat(), "kind": "plan", "sentence": "To 580: halted.", "href": "/plans/7"}
    answers.give(OWN, lambda window: said(window) | {"marks": [mark]})
    open_a_node(page)

    expect(page.locator("#node-plots [data-marks] a", has_text="To 580: halted.")).to_have_attribute("href", "/plans/7")


@pytest.mark.nightly
def test_a_link_that_is_lost_has_plots_ask_as_the_other_parts_do(looking):
    page = looking.page
    Followed(page)

    with page.expect_request(OWN):
        tell(page, "live:poll")


@pytest.mark.nightly
def test_a_finding_is_asked_for_until_its_time_and_what_came_late_is_drawn(looking, answers):
    page = looking.page
    answers.give(OWN, said)
    answers.give(A_FINDING, lambda _: said("around", age=timedelta(minutes=10)))
    answers.give(ANOTHER, lambda _: said("around", age=timedelta(hours=1)))
    page.clock.install()
    open_a_node(page)
    now = datetime.now(UTC)

    page.evaluate(A_SECTION, [A_FINDING, (now + timedelta(minutes=20)).isoformat()])
    expect(page.locator("#finding-plots").get_by_role("img")).to_have_count(1)
    with page.expect_request(re.compile(A_FINDING)):
        looking.pass_time("01:02")

    page.evaluate(A_SECTION, [ANOTHER, (now - timedelta(hours=1)).isoformat()])
    expect(page.locator("#finding-plots [data-said]")).to_be_hidden()
    for _ in range(3):
        with page.expect_request(OWN):  # what goes on beside it
            looking.pass_time("01:02")
    assert answers.number(ANOTHER) == 1


@pytest.mark.nightly
def test_a_section_that_is_about_another_now_is_drawn_anew(looking, answers):
    page = looking.page
    answers.give(OWN, said)
    answers.give(A_FINDING, lambda _: said("around", title="Temperature then"))
    answers.give(ANOTHER, lambda _: said("around", title="Temperature now"))
    open_a_node(page)
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    page.evaluate(A_SECTION, [A_FINDING, past])
    expect(page.get_by_role("img", name="Temperature then")).to_have_count(1)

    page.evaluate(A_SECTION, [ANOTHER, past])

    expect(page.get_by_role("img", name="Temperature now")).to_have_count(1)
    expect(page.get_by_role("img", name="Temperature then")).to_have_count(0)
    expect(page.locator("#finding-plots [data-said]")).to_be_hidden()


@pytest.mark.nightly
def test_an_answer_of_the_window_before_comes_too_late(looking, answers):
    page = looking.page
    answers.give(OWN, said)
    answers.give(ITS_TWIN, lambda window: None if window == "1h" else said(window))
    open_a_node(page)
    with page.expect_request(re.compile(ITS_TWIN)):
        page.click("text=Compare with a healthy node")

    page.click("[data-window='6h']")
    drawn(page, "6h")
    answers.let_go(said("1h"))

    drawn(page, "6h")


@pytest.mark.nightly
def test_a_twin_that_answers_after_nobody_compares_is_not_drawn(looking, answers):
    page = looking.page
    answers.give(OWN, said)
    answers.give(ITS_TWIN, lambda _: None)
    open_a_node(page)
    drawn(page)
    with page.expect_request(re.compile(ITS_TWIN)):
        page.click("text=Compare with a healthy node")

    page.click("text=Stop comparing")
    answers.let_go(said("1h", value=70))

    expect(page.locator("#node-plots .plot-values")).to_have_text("GPU 0 61")


def test_comparing_is_told_and_who_ends_it_is_at_its_button(looking, answers):
    page = looking.page
    answers.give(OWN, said)
    answers.give(ITS_TWIN, lambda window: said(window, value=70))
    open_a_node(page)
    compare = page.get_by_role("button", name="Compare with a healthy node")
    expect(compare).to_have_attribute("aria-expanded", "false")

    compare.click()
    expect(compare).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#announcer")).to_have_text("Compared.")
    expect(page.get_by_role("img", name="1 of other-gpu from 60 to 70 °C")).to_have_count(1)

    page.click("text=Stop comparing")
    expect(compare).to_have_attribute("aria-expanded", "false")
    expect(compare).to_be_focused()

    compare.click()
    expect(page.locator("[data-comparable]")).to_have_count(1)
    compare.click()
    expect(page.locator("#comparable-node")).to_be_empty()


@pytest.mark.nightly
def test_a_twin_that_the_server_does_not_find_is_said(looking, answers):
    page = looking.page
    answers.give(OWN, said)
    answers.give(ITS_TWIN, said)
    page.route(THE_TWIN, lambda route: route.fulfill(status=500))
    open_a_node(page)

    page.click("text=Compare with a healthy node")

    expect(page.get_by_role("alert")).to_contain_text("The server answered 500")
    looking.complaints.clear()  # the browser logs the 500
    page.route(THE_TWIN, lambda route: route.fulfill(body=TWIN))
    page.click("text=Compare with a healthy node")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(page.locator("[data-comparable]")).to_have_count(1)


@pytest.mark.nightly
def test_a_findings_plot_says_whom_it_is_about_and_its_limits(looking, answers):
    page = looking.page
    lines = [{"name": f"GPU {index}", "values": [60, 92 - index], "is_subject": not index} for index in range(3)]
    full = {"key": "memory_used_mib", "title": "Memory used", "unit": "MiB", "lines": lines}
    limits = [{"severity": "warning", "value": 77481}]
    answers.give(OWN, said)
    answers.give(A_FINDING, lambda _: said("around", lines=lines, limits=[{"severity": "warning", "value": 83}]))
    answers.give(ANOTHER, lambda _: said("around", **full, limits=limits))
    open_a_node(page)

    page.evaluate(A_SECTION, [A_FINDING, datetime.now(UTC).isoformat()])
    expect(page.locator("#finding-plots").get_by_role("img")).to_have_accessible_name(
        "Temperature around its start: GPU 0 from 60 to 92 °C; 2 beside from 60 to 91 °C; warning from 83 °C"
    )

    page.evaluate(A_SECTION, [ANOTHER, datetime.now(UTC).isoformat()])
    expect(page.locator("#finding-plots figcaption")).to_have_text("Memory used, GiB warning from 75.7 GiB")


@pytest.mark.nightly
def test_comparing_ends_also_before_anything_was_drawn(looking, answers):
    page = looking.page
    answers.give(OWN, lambda _: None)
    answers.give(ITS_TWIN, said)
    open_a_node(page)
    page.click("text=Compare with a healthy node")

    page.click("text=Stop comparing")
    answers.let_go(said("1h"))

    drawn(page)
    expect(page.locator("#comparable-node")).to_be_empty()


@pytest.mark.nightly
def test_what_links_move_is_told_in_units_that_fit(looking, answers):
    its = {"key": "nvlink_mib_per_s", "title": "NVLink traffic", "unit": "MiB/s"}
    answers.give(OWN, lambda window: said(window, value=167 * 1024, **its))
    open_a_node(looking.page)

    expect(looking.page.locator("#node-plots figcaption")).to_have_text("NVLink traffic, GiB/s")
    expect(looking.page.locator("#node-plots .plot-values")).to_contain_text("167.00")


@pytest.mark.nightly
def test_plots_name_their_source_what_it_does_not_keep_and_where_to_add_one(looking, answers):
    page = looking.page
    lone = {"lines": [{"name": "GPU 0", "values": [None, 61], "is_subject": False}]}
    more = {"drawn_from": "exporters", "not_kept": ["Memory temperature"], "add_source_href": "/clusters/1"}
    answers.give(OWN, lambda window: said(window, **lone) | more)

    open_a_node(page)

    expect(page.locator("#node-plots header")).to_contain_text("UTC, from the exporters, at one minute, last 24 h")
    expect(page.locator("#node-plots [data-said]")).to_contain_text("Kept only with a Prometheus: Memory temperature.")
    expect(page.get_by_role("link", name="Add a Prometheus")).to_have_attribute("href", "/clusters/1")
    assert page.locator("#node-plots canvas").evaluate(COLOURED) > 0


@pytest.mark.nightly
def test_where_there_is_no_line_no_source_is_named(looking, answers):
    page = looking.page
    none = {"plots": [], "trouble": "The first points appear within two minutes.", "drawn_from": "exporters"}
    answers.give(OWN, lambda window: said(window) | none)

    open_a_node(page)

    expect(page.locator("#node-plots [data-said]")).to_have_text("The first points appear within two minutes.")
    expect(page.locator("#node-plots [data-source]")).to_be_empty()
