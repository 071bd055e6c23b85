"""What the scripts of a page do where a network or a clock is not as they wish: in a browser, without a stack."""

import mimetypes
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route

from tests.browser.outside import look_away, look_back
from tests.patience import PATIENCE_MS

STATIC = Path(__file__).parents[2] / "static"
HOME = "http://quarterdeck.test"
# htmx, Idiomorph and the socket, as far as the scripts use them: what they are told is written down.
STAND_INS = """
window.asked = [];
window.htmx = { ajax: (_, address) => { asked.push(address); } };
window.Idiomorph = { defaults: { callbacks: {} } };
window.sockets = [];
window.WebSocket = class { constructor() { sockets.push(this); } close() {} };
window.receive = (message) => {
  const { onmessage } = sockets.at(-1);
  onmessage?.({ data: JSON.stringify(message) });
  return !!onmessage;
};
"""
PAGE = """<!doctype html><body data-topics="fleet" data-seq="{}">
<p id="link"><span class="link-words"></span></p>
<div id="link-bar" hidden><span id="link-bar-words"></span><button data-link-retry>Try now</button></div>
<div id="often" data-part="/often" data-on="" data-every="1"></div>
<div id="followed" data-part="/followed" data-on="fleet"></div>
<div id="table" data-part="/table" data-on="fleet telemetry" data-kinds="findings" data-slowly="telemetry pods"></div>
<div id="kinds" data-part="/kinds" data-on="cluster-1" data-kinds="exporters" data-slowly="any last-seen"
     data-slowly-s="60"></div>
<script type="module" src="/static/js/page.js"></script></body>"""
# By how much the browser's clock is ahead: it can be set while the page is open.
CLOCK = "window.ahead = %d; const truly = Date.now; Date.now = () => truly() + window.ahead;"
HOUR_MS = 3_600_000


def serve(route: Route) -> None:
    path = route.request.url.removeprefix(HOME).partition("?")[0]
    if path.startswith("/static/"):
        file = STATIC / path.removeprefix("/static/")
        route.fulfill(body=file.read_bytes(), content_type=mimetypes.guess_type(file.name)[0])
    else:
        route.fulfill(body=PAGE, content_type="text/html")


def opened(page: Page, *, ahead_ms: int = 0, is_answered: bool = True) -> None:
    page.add_init_script(STAND_INS + CLOCK % ahead_ms)
    page.route("**/*", serve)
    page.goto(HOME)
    page.wait_for_function("sockets.length === 1")
    if is_answered:
        hello(page)


def hello(page: Page, *, after: timedelta = timedelta()) -> None:
    """Says it once, through the newest socket that is listened to: one that was given up hears nothing more."""
    said = {"type": "hello", "server_time": (datetime.now(UTC) + after).isoformat(), "seq": {}, "last_seen": {}}
    page.wait_for_function("message => receive(message)", arg=said)


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    context = chromium.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    yield page
    context.close()


@pytest.mark.parametrize("ahead_ms", [0, HOUR_MS, -HOUR_MS])
def test_a_part_that_is_asked_for_every_second_is_so_whatever_the_clock_of_the_browser_says(page, ahead_ms):
    opened(page, ahead_ms=ahead_ms)

    page.wait_for_function("asked.filter((each) => each === '/often').length > 1", timeout=10_000)


def test_nothing_is_asked_for_while_nobody_looks_and_once_when_somebody_does(page):
    page.clock.install()
    opened(page)
    look_away(page)
    page.evaluate("asked.length = 0")
    page.evaluate("document.dispatchEvent(new CustomEvent('live:gap', { detail: { topic: 'cluster-1' } }))")
    page.clock.run_for(5000)

    assert page.evaluate("asked") == []
    look_back(page)
    assert sorted(page.evaluate("asked")) == ["/followed", "/kinds", "/often", "/table"]


def test_a_part_whose_last_answer_has_no_address_is_not_fetched(page):
    page.clock.install()
    opened(page)
    page.clock.run_for(3000)
    page.evaluate("asked.length = 0")
    page.evaluate("document.dispatchEvent(new CustomEvent('live:gap', { detail: { topic: 'cluster-1' } }))")

    page.evaluate("delete document.getElementById('followed').dataset.part")
    page.clock.run_for(5000)

    assert asked(page, "/table") > 0
    assert page.evaluate("asked.filter((each) => each === undefined).length") == 0


def test_times_of_a_part_that_is_drawn_again_are_current_at_once(page):
    """A part that did not change is answered 304, so the browser draws the words of its first answer."""
    opened(page)
    words = page.evaluate(
        """() => {
          const part = document.getElementById("followed");
          const at = new Date(Date.now() - 60500).toISOString();
          part.innerHTML = `<time datetime="${at}" data-when="for">0 s</time>`;
          part.dispatchEvent(new CustomEvent("htmx:afterSwap", { bubbles: true, detail: { target: part } }));
          return part.textContent;
        }"""
    )
    assert words == "1 min"


def test_a_part_follows_what_changes_after_a_clock_was_set_back(page):
    opened(page)
    change = "document.dispatchEvent(new CustomEvent('live:gap', { detail: { topic: 'cluster-1' } }))"
    page.evaluate(change)
    page.wait_for_function("asked.includes('/followed')")

    page.evaluate("asked.length = 0; window.ahead = -3600000")
    page.evaluate(change)

    page.wait_for_function("asked.includes('/followed')", timeout=10_000)


def told(page: Page, *, topic: str = "telemetry-1", **said) -> None:
    page.evaluate(
        "detail => document.dispatchEvent(new CustomEvent('live:changed', { detail }))", {"topic": topic, **said}
    )


def asked(page: Page, address: str) -> int:
    return page.evaluate("address => asked.filter((each) => each === address).length", address)


def test_what_always_has_news_is_fetched_at_once_and_then_at_most_every_15_seconds(page):
    page.clock.install()
    opened(page)
    page.evaluate("asked.length = 0")

    told(page)
    page.clock.run_for(1200)
    assert (asked(page, "/table"), asked(page, "/followed")) == (1, 0)
    for topic in ("telemetry-1", "telemetry-2", "telemetry-3"):
        told(page, topic=topic)
        page.clock.run_for(3000)
    told(page, topic="cluster-1", seq=1, prev=0, kinds=["pods"])
    page.clock.run_for(3000)
    assert asked(page, "/table") == 1

    page.clock.run_for(4000)
    assert asked(page, "/table") == 2


def test_what_is_urgent_does_not_wait_for_what_is_not(page):
    page.clock.install()
    opened(page)
    page.evaluate("asked.length = 0")
    told(page)
    page.clock.run_for(2500)
    told(page)

    told(page, topic="cluster-1", seq=1, prev=0, kinds=["findings"])
    page.clock.run_for(2000)
    assert asked(page, "/table") == 2
    told(page, topic="cluster-1", seq=2, prev=1, kinds=["deployments.apps"])
    page.clock.run_for(20_000)
    assert asked(page, "/table") == 2  # neither of what it is not about, nor once more for what it has fetched since


def test_what_is_shown_is_fetched_when_its_cluster_is_not_heard_any_more_and_when_it_is_again(page):
    """No message tells of it, and a page that asks every minute would say so as much later."""
    page.clock.install()
    opened(page)
    beat = """at => { const server_time = new Date(Date.now()).toISOString();
        receive({ type: "heartbeat", server_time, seq: {}, last_seen: { "cluster-1": at ?? server_time } }); }"""
    at = page.evaluate("new Date(Date.now()).toISOString()")
    page.evaluate(beat, at)
    page.evaluate("asked.length = 0")

    for expected, beats in ((0, 17), (1, 6)):  # of 5 s: 85 s, and 115 s
        for _ in range(beats):
            page.clock.run_for(5000)
            page.evaluate(beat, at)
        assert asked(page, "/followed") == expected

    page.evaluate(beat, None)
    page.clock.run_for(3000)
    assert asked(page, "/followed") == 2


def beat(page: Page, at: str) -> None:
    page.evaluate(
        """at => receive({ type: "heartbeat", server_time: new Date(Date.now()).toISOString(), seq: {},
            last_seen: { "cluster-1": at, "cluster-2": new Date(Date.now()).toISOString() } })""",
        at,
    )


def test_when_a_cluster_was_heard_is_news_for_what_says_it_and_for_nothing_else(page):
    page.clock.install()
    opened(page)
    at = page.evaluate("new Date(Date.now()).toISOString()")
    beat(page, at)
    page.evaluate("asked.length = 0")

    for _ in range(12):  # of another cluster it is heard all the time
        page.clock.run_for(5000)
        beat(page, at)
    assert (asked(page, "/kinds"), asked(page, "/followed"), asked(page, "/table")) == (0, 0, 0)

    for _ in range(9):
        beat(page, page.evaluate("new Date(Date.now()).toISOString()"))
        page.clock.run_for(5000)
    assert (asked(page, "/kinds"), asked(page, "/followed"), asked(page, "/table")) == (1, 0, 0)


def test_what_follows_anything_does_so_at_its_own_pace(page):
    page.clock.install()
    opened(page)
    page.evaluate("asked.length = 0")

    for number in range(20):
        told(page, topic="cluster-1", seq=number + 1, prev=number, kinds=["deployments.apps"])
        page.clock.run_for(2500)
    assert asked(page, "/kinds") == 1
    told(page, topic="cluster-2", seq=1, prev=0, kinds=["exporters"])
    page.clock.run_for(5000)
    assert asked(page, "/kinds") == 1

    told(page, topic="cluster-1", seq=21, prev=20, kinds=["exporters"])
    page.clock.run_for(2000)
    assert asked(page, "/kinds") == 2


@pytest.mark.parametrize(("seq", "event"), [(6, "live:gap"), (7, "live:changed")])
def test_what_is_told_with_an_older_number_is_fetched_and_takes_back_no_number(page, seq, event):
    """Who looked before the last flush has news all the same: a finding appeared only at the next change."""
    opened(page)
    page.evaluate("""
        window.events = [];
        for (const name of ['live:gap', 'live:changed']) document.addEventListener(name, () => events.push(name));
    """)
    flush, finding = ({"type": "cluster.changed", "topic": "cluster-1", "kinds": []} for _ in range(2))

    page.evaluate("receive", flush | {"seq": 7})
    page.evaluate("receive", finding | {"seq": seq, "kinds": ["findings"]})
    page.evaluate("receive", flush | {"seq": 8, "prev": 7})

    assert page.evaluate("events") == ["live:changed", event, "live:changed"]


@pytest.mark.parametrize("ahead_ms", [60_000, -HOUR_MS])
def test_a_connection_through_which_nothing_comes_is_given_up_and_made_again(page, ahead_ms):
    opened(page)

    page.evaluate("ahead => { window.ahead = ahead }", ahead_ms)

    page.wait_for_function("sockets.length === 2", timeout=10_000)
    hello(page)
    page.wait_for_selector("#link[data-state='live']")


@pytest.mark.parametrize("was_live", [False, True])
def test_a_connection_that_never_comes_about_is_given_up_and_made_again(page, was_live):
    """No close comes of it: the page said *connecting…*, or that the next try is in 0 s, for good."""
    opened(page, is_answered=was_live)
    if was_live:
        page.evaluate("sockets[0].onclose({ code: 1012 })")
        page.wait_for_function("sockets.length === 2", timeout=10_000)
    asked = page.evaluate("sockets.length")

    page.evaluate("window.ahead = 15000")

    page.wait_for_function(f"sockets.length > {asked}", timeout=10_000)
    page.evaluate("window.ahead = 30000")
    page.wait_for_selector("#link[data-state='lost']")
    page.wait_for_function("document.getElementById('link-bar-words').textContent.includes('trying again now')")
    hello(page)
    page.wait_for_selector("#link[data-state='live']")


def test_who_presses_the_button_under_a_silent_link_has_a_new_one(page):
    opened(page)
    page.evaluate("window.ahead = 15000")
    page.wait_for_selector("#link[data-state='stale']")

    page.click("[data-link-retry]")

    assert page.evaluate("sockets.length") == 2


def test_a_page_that_ended_is_loaded_again_by_who_reads_it_and_not_by_the_network(page):
    """Somebody may have written half a reason."""
    opened(page)
    page.evaluate("sockets[0].onclose({ code: 4401 })")
    page.wait_for_selector("#link[data-state='lost']")

    page.evaluate("window.isRead = true; window.dispatchEvent(new Event('online'))")
    page.evaluate("fetch('/')")

    assert page.evaluate("window.isRead")
    page.click("[data-link-retry]")
    page.wait_for_function("!window.isRead")


def test_nor_is_one_whose_parts_are_answered_with_the_page_to_sign_in_at(page):
    opened(page)
    page.evaluate("window.isRead = true; document.body.dataset.signIn = '/sign-in'")

    answer = "{ xhr: { responseURL: `${location.origin}/sign-in?next=/often` } }"
    page.evaluate(f"document.dispatchEvent(new CustomEvent('htmx:beforeSwap', {{ detail: {answer} }}))")

    page.wait_for_selector("#link[data-state='lost']")
    assert "You are signed out." in page.inner_text("#link-bar-words")
    assert page.evaluate("window.isRead")


# Two clusters of two GPUs each; each step asks for one of them, or for all, and is answered with bytes or a number.
MEASURE = """async (steps) => {
    const { Measure } = await import('/static/js/map-measure.js');
    const places = { 1: { from: 0, to: 2 }, 2: { from: 2, to: 4 } }, drawn = [], said = [];
    const metrics = { temperature: Uint8Array.of(61, 61, 62, 62) };
    const raster = { index: 'x', gpus: new Uint8Array(4), metrics, placeOf: (key) => places[key] };
    const measure = new Measure({
        choice: { colour: { metric: 'temperature' } }, raster, place: { dataset: { map: '/map' } },
        tell() {}, redraw() { drawn.push('all'); }, recolour(at) { drawn.push(at); }, nameOf: (key) => `eu-${key}`,
    });
    for (const [cluster, answer] of steps) {
        const isNumber = typeof answer === 'number';
        const response = isNumber ? new Response('', { status: answer }) : new Response(Uint8Array.from(answer));
        window.fetch = async () => response;
        await measure.fetch(cluster);
        const [told] = measure.sentences('temperature');
        said.push({ bytes: metrics.temperature && [...metrics.temperature], again: [...measure.newer], told });
    }
    return { said, drawn };
}"""


def test_what_is_not_had_of_one_cluster_blanks_that_cluster_of_the_map_and_no_other(page):
    opened(page)

    told = page.evaluate(MEASURE, [[1, 503], [2, [63, 63]], [1, [64, 64]]])

    failed, other, again = told["said"]
    assert failed["bytes"] == [255, 255, 62, 62]
    assert failed["told"].startswith("The temperature of the GPUs of eu-1 was not fetched (it answered 503).")
    assert failed["again"] == [1]
    assert other["bytes"] == [255, 255, 63, 63]
    assert other["told"] == failed["told"]
    assert again["bytes"] == [64, 64, 63, 63]
    assert "not fetched" not in again["told"]
    assert told["drawn"] == [[0, 1], [2, 3], [0, 1]]


def test_what_is_not_had_of_any_cluster_blanks_the_map(page):
    opened(page)

    told = page.evaluate(MEASURE, [[1, 503], [None, 500], [None, [61, 61, 62, 62]]])

    assert [step["bytes"] for step in told["said"]] == [[255, 255, 62, 62], None, [61, 61, 62, 62]]
    assert told["said"][1]["told"].startswith("The temperature of the GPUs was not fetched (it answered 500).")
    assert "not fetched" not in told["said"][2]["told"]


@pytest.mark.parametrize(
    ("pools", "filled", "height"),
    [
        ([29, 5, 22, 8], (0.88, 1), (160, 241)),
        ([64], (0.88, 1), (160, 241)),
        ([8], (0.25, 1), (120, 241)),
        ([3000, 1500, 500], (0.88, 1), (400, 701)),
    ],
)
def test_the_map_fills_the_width_with_few_nodes_as_with_many(page: Page, pools, filled, height):
    opened(page)
    arrange = """async (pools) => {
        const { arrange } = await import('/static/js/map-arrange.js');
        let start = 0;
        const groups = pools.map((number) => {
            const nodes = Array.from({ length: number }, (_, at) => start + at);
            start += number;
            return { title: 'h100', nodes, columns: 4, rows: 2, start: nodes[0] };
        });
        const found = arrange({ groups, order: new Uint32Array(start) }, 1540, 700, 1);
        return [found.filled / 1540, found.height];
    }"""

    width, tall = page.evaluate(arrange, pools)

    assert filled[0] <= width <= filled[1]
    assert height[0] <= tall < height[1]
