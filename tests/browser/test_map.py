"""The map in a browser: what it draws, how it is walked, what is in the URL, and what it does without an answer."""

import re
from base64 import b64encode

import pytest
from playwright.sync_api import expect

from demo.visitor import wait_until
from fleet.map_cells.cell import NodeCells
from fleet.states.node import NodeState
from tests.browser.conftest import PHONE
from tests.browser.outside import cordoned, look_away, look_back, tell
from tests.patience import PATIENCE_S

SCREEN = {"width": 1600, "height": 900}
COLOURS = """() => { const c = document.querySelector('.map canvas');
    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    const seen = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3]) seen.add(d[i] + ',' + d[i + 1]);
    return seen.size; }"""
HOLD_PICTURES = """{ const held = [], real = requestAnimationFrame.bind(window);
    let isHeld = true;
    window.requestAnimationFrame = (draw) => (isHeld ? held.push(draw) : real(draw));
    window.takePictures = () => { isHeld = false; held.splice(0).forEach(real); }; }"""
NEVER_REORDERED = """{ const real = setTimeout, fillText = CanvasRenderingContext2D.prototype.fillText;
    window.setTimeout = (act, ms, ...given) => (ms === 3000 ? 0 : real(act, ms, ...given));
    window.written = [];
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
        written.push(text);
        fillText.call(this, text, ...at);
    }; }"""
FIRST = {"x": 8, "y": 22}  # the first node of the first group


def is_marked(page, name: str) -> None:
    """Wait until the map's own script has marked that moment.

    `wait_for_function` evaluates its text in the page, which the Content Security Policy forbids, where its first
    look is in vain.
    """
    look = f"performance.getEntriesByName('{name}').length"
    wait_until(lambda: page.evaluate(look), what=name, timeout_s=PATIENCE_S)


def drawn(page) -> list[str]:
    """The names of the map's nodes, once all of them are drawn."""
    names = page.request.get("/parts/fleet/map/index").json()["names"]
    expect(page.locator("[data-map]")).to_have_attribute("data-drawn", str(len(names)))
    return names


def legend(page) -> dict[str, int]:
    rows = page.locator(".map-kind:visible").evaluate_all("all => all.map((each) => each.innerText)")
    found = {}
    for row in rows:
        number, title = row.split(maxsplit=1)
        found[title] = int(number.replace(",", ""))
    return found


def counts(page, total: int) -> None:
    """Wait until what the legend counts is this many."""
    wait_until(lambda: sum(legend(page).values()) == total, what=f"a legend of {total}", timeout_s=PATIENCE_S)


def figure(page, words: str) -> int:
    text = page.locator(".sum .fig", has_text=words).first.inner_text()
    return int(re.findall(r"\d+", text)[0])


def test_the_map_draws_every_node_and_leads_to_it(window):
    page = window("viewer").page
    names = drawn(page)
    page.locator(".map canvas").first.hover(position=FIRST)
    tip = page.locator(".map-tip").inner_text().splitlines()
    colours = page.evaluate(COLOURS)
    page.locator(".map canvas").first.click(position=FIRST)

    page.wait_for_url("**/nodes/*")
    assert tip[0] in names
    assert any("8 GPUs" in line for line in tip)
    expect(page.locator("h1")).to_have_text(tip[0])
    assert colours > 2


def test_the_map_is_walked_by_keyboard_and_says_where_it_is(window):
    page = window("viewer").page
    names = drawn(page)
    place = page.locator("[data-map]")
    said = place.locator("[aria-live]")

    place.focus()
    page.keyboard.press("End")
    expect(said).to_contain_text(f"{len(names)} of {len(names)}")
    page.keyboard.press("Home")
    expect(said).to_contain_text(f"1 of {len(names)}")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    expect(said).to_contain_text(f"1 of {len(names)}")
    page.keyboard.press("ArrowRight")
    expect(said).to_contain_text(f"2 of {len(names)}")
    name = said.inner_text().split(",")[0]

    expect(place.locator(".map-tip")).to_contain_text(name)
    expect(place.locator(".map-marker")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(name)


@pytest.mark.nightly
def test_the_ground_between_the_nodes_is_the_panels(window):
    page = window("viewer", color_scheme="light").page
    drawn(page)

    black = page.evaluate(
        """() => { const c = document.querySelector('.map canvas');
        const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
        let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] + d[i + 1] + d[i + 2] === 0) n += 1;
        return n; }"""
    )

    assert black == 0


def test_it_is_on_one_screen_and_leaves_no_empty_column(window):
    page = window("viewer", viewport=SCREEN).page
    drawn(page)

    assert page.evaluate("document.querySelector('.map canvas').getBoundingClientRect().bottom") <= SCREEN["height"]
    assert page.locator("#map-panel").bounding_box()["width"] >= SCREEN["width"] - 60


def test_what_the_legend_counts_is_what_the_page_counts(window):
    page = window("viewer").page
    drawn(page)
    nodes, gpus = figure(page, "GPU node"), figure(page, "GPUs")

    assert sum(legend(page).values()) == nodes
    for colour, total in (("allocation", gpus), ("driver", nodes), ("age", nodes)):
        page.select_option("[data-map-choice='colour']", colour)
        expect(page.locator(".map-kind:visible")).not_to_have_count(0)
        page.wait_for_url(re.compile(colour))
        counts(page, total)
    page.select_option("[data-map-choice='colour']", "allocation")
    expect(page.locator("[data-kind='allocated']")).to_be_visible()
    assert legend(page)["allocated"] == figure(page, "allocated")


def test_what_is_chosen_is_in_the_url_and_survives_a_reload_and_the_filter_of_the_table(window):
    page = window("viewer").page
    names = drawn(page)

    page.select_option("[data-map-choice='group']", "zone")
    page.select_option("[data-map-choice='order']", "physical")
    page.select_option("[data-map-choice='colour']", "allocation")
    page.fill("#q", names[0])
    page.wait_for_url(f"**/?q={names[0]}**")
    page.wait_for_url("**map_colour=allocation**")
    page.reload()
    drawn(page)

    for name, chosen in (("group", "zone"), ("order", "physical"), ("colour", "allocation")):
        expect(page.locator(f"[data-map-choice='{name}']")).to_have_value(chosen)
    expect(page.locator("#q")).to_have_value(names[0])


def test_a_change_from_outside_is_drawn_from_its_message_and_counted(stack, window):
    watched = window("viewer")
    watched.is_live()
    page = watched.page
    name = drawn(page)[0]
    asked = []
    page.on("request", lambda request: asked.append(request.url) if request.url.endswith("/index") else None)

    with cordoned(stack, name):
        expect(page.locator("[data-kind='cordoned'] b")).to_have_text("1")
        page.click("[data-kind='cordoned']")
        expect(page.locator("[data-map]")).to_have_attribute("data-drawn", "1")
        expect(page.locator(".map-note")).to_contain_text("1 of 16 nodes")
        assert "map_only=cordoned" in page.url
    expect(page.locator("[data-map]")).to_have_attribute("data-state", "no-match")
    page.click("[data-map-clear]")

    drawn(page)
    assert "map_only" not in page.url
    assert asked == []


@pytest.mark.nightly
def test_a_group_counts_a_fault_before_its_nodes_stand_in_their_new_order(window):
    page = window("viewer").page
    page.add_init_script(NEVER_REORDERED)
    page.reload()
    drawn(page)
    node, cells = page.request.get("/parts/fleet/map/index").json()["keys"][0], NodeCells(NodeState.NOT_READY, bytes(8))
    cluster = page.request.get("/api/v1/clusters").json()["results"][0]["id"]
    assert not page.evaluate("written.some((text) => text.includes('fault'))")

    told = [[node, 0, b64encode(cells.alone).decode()]]
    tell(page, topic=f"cluster-{cluster}", seq=10**9, prev=0, nodes=told)

    expect(page.locator("[data-kind='not-ready'] b")).to_have_text("1")
    wait_until(lambda: "1 fault" in page.evaluate("written.join()"), what="its fault", timeout_s=PATIENCE_S)


@pytest.mark.nightly
def test_a_change_before_the_first_picture_is_in_it(stack, window):
    """A tab behind others gets no picture drawn; its page hears of changes all the same."""
    watched = window("viewer")
    page = watched.page
    name = drawn(page)[0]
    page.add_init_script(HOLD_PICTURES)
    page.reload()
    watched.is_live()
    is_marked(page, "map-raster")
    expect(page.locator("[data-map]")).to_have_attribute("data-state", "loading")

    with cordoned(stack, name):
        is_marked(page, "map-batch")
        page.evaluate("takePictures()")
        expect(page.locator("[data-kind='cordoned'] b")).to_have_text("1")
    expect(page.locator("[data-kind='cordoned'] b")).to_have_text("0")


def test_a_gap_fetches_the_raster_again(window):
    watched = window("viewer")
    watched.is_live()
    page = watched.page
    drawn(page)

    with page.expect_response("**/parts/fleet/map"):
        page.evaluate("document.dispatchEvent(new CustomEvent('live:gap', { detail: { topic: 'cluster-1' } }))")


def test_faults_only_leaves_what_is_wrong_and_says_how_to_come_back(window):
    page = window("viewer").page
    drawn(page)

    page.check("[data-map-faults]")

    expect(page.locator(".map-note")).to_contain_text("of 16 nodes")
    assert "map_faults=1" in page.url
    page.click("[data-map-clear]")
    drawn(page)


def test_a_server_that_does_not_answer_is_said_and_asked_again(window):
    watched = window("viewer")
    page = watched.page
    page.route("**/parts/fleet/map", lambda route: route.fulfill(status=503, body=""))
    page.reload()
    expect(page.locator(".map-note")).to_contain_text("it answered 503")
    expect(page.locator("[data-map]")).to_have_attribute("data-state", "error")

    page.unroute("**/parts/fleet/map")

    drawn(page)
    expect(page.locator(".map-note")).to_be_hidden()
    watched.complaints.clear()  # the browser itself logs what was refused


def test_a_metric_colours_each_gpu_and_unknown_is_not_zero(window):
    page = window("viewer").page
    gpus = 8 * len(drawn(page))
    half = gpus // 2
    values = bytes([0] * (half - 3) + [255, 254, 253] + [61] * (gpus - half))
    page.route("**/parts/fleet/map/metrics/temperature?index=*", lambda route: route.fulfill(body=values))

    page.select_option("[data-map-choice='colour']", "temperature")

    expect(page.locator("[data-kind='0'] b")).to_have_text(str(half - 3))
    expect(page.locator("[data-kind='2'] b")).to_have_text(str(gpus - half))
    for kind in ("no-data", "not-of-now", "not-exported"):
        expect(page.locator(f"[data-kind='{kind}'] b")).to_have_text("1")


@pytest.mark.nightly
def test_a_metric_that_is_not_had_is_said_and_never_drawn_as_it_was(window):
    watched = window("viewer")
    page = watched.page
    gpus = 8 * len(drawn(page))
    page.route("**/parts/fleet/map/metrics/*", lambda route: route.fulfill(status=503))

    page.select_option("[data-map-choice='colour']", "utilisation")

    expect(page.locator(".map-note")).to_contain_text("The utilisation of the GPUs was not fetched (it answered 503)")
    expect(page.locator("[data-kind='no-data'] b")).to_have_text(str(gpus))
    page.unroute("**/parts/fleet/map/metrics/*")  # newer telemetry is asked for once more, whenever it comes
    watched.complaints.clear()  # the browser itself logs what was refused


def coloured_by_temperature(page, values: dict[str, int]) -> tuple[int, list[str]]:
    """The key of its cluster, and what is asked for: each GPU has the value, whichever that is by then."""
    gpus, asked = 8 * len(drawn(page)), []

    def answer(route):
        asked.append(route.request.url)
        route.fulfill(body=bytes([values["celsius"]] * gpus))

    page.route("**/parts/fleet/map/metrics/temperature?index=*", answer)
    page.select_option("[data-map-choice='colour']", "temperature")
    expect(page.locator("[data-kind='2'] b")).to_have_text(str(gpus))
    return int(page.request.get("/api/v1/clusters").json()["results"][0]["id"]), asked


@pytest.mark.nightly
def test_newer_telemetry_colours_the_map_anew_with_the_bytes_of_its_cluster(window):
    watched = window("viewer")
    watched.is_live()
    page, values = watched.page, {"celsius": 61}
    cluster, asked = coloured_by_temperature(page, values)

    values["celsius"] = 90
    tell(page, topic=f"telemetry-{cluster}", seq=1)

    expect(page.locator("[data-kind='2']")).to_be_hidden()
    expect(page.locator("[data-kind='4'] b")).to_have_text(str(8 * len(drawn(page))))
    assert asked[-1].endswith(f"&cluster={cluster}")


@pytest.mark.nightly
def test_a_map_that_nobody_sees_asks_nothing_and_is_anew_when_somebody_looks(window):
    watched = window("viewer")
    page, values = watched.page, {"celsius": 61}
    page.clock.install()
    watched.is_live()
    cluster, _ = coloured_by_temperature(page, values)
    maps = []
    page.on("request", lambda request: maps.append(request.url) if "/parts/fleet/map" in request.url else None)

    look_away(page)
    values["celsius"] = 90
    tell(page, topic=f"telemetry-{cluster}", seq=1)
    tell(page, "live:gap", topic=f"cluster-{cluster}")
    page.clock.fast_forward("01:10")
    page.evaluate("fetch('/')")

    assert maps == []
    look_back(page)
    expect(page.locator("[data-kind='4'] b")).to_have_text(str(8 * len(drawn(page))))


@pytest.mark.nightly
def test_a_cluster_that_is_not_heard_any_more_has_the_frame_fetched_again(window):
    """No message tells of it: only the heartbeat says when it was heard last."""
    watched = window("viewer")
    watched.is_live()
    page = watched.page
    drawn(page)
    cluster = page.request.get("/api/v1/clusters").json()["results"][0]["id"]

    with page.expect_request("**/parts/fleet/map"):
        tell(page, "live:last-seen", topic=f"cluster-{cluster}", at="2026-01-01T00:00:00Z")


@pytest.mark.parametrize("given", [{"viewport": PHONE}, {"forced_colors": "active"}, {"device_scale_factor": 2}])
def test_it_is_drawn_on_every_screen(window, given):
    watched = window("viewer", **given)
    drawn(watched.page)

    assert watched.page.evaluate(COLOURS) > 2
    assert watched.fits()


def test_a_drag_over_the_map_selects_nodes_for_an_action_and_keys_do_too(window):
    page = window("operator").page
    names = drawn(page)
    box = page.locator(".map canvas").first.bounding_box()
    selected = page.locator("[data-picked]")
    page.mouse.move(box["x"] + 1, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"], steps=4)
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] - 1, steps=4)
    page.mouse.up()
    expect(selected).to_have_text(f"{len(names)} nodes selected")
    expect(page.locator("[data-pick][aria-checked=true]").first).to_be_visible()
    page.locator("[data-pick-none]").click()
    expect(selected).to_be_hidden()

    page.mouse.move(box["x"] + FIRST["x"], box["y"] + FIRST["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + FIRST["x"] + 9, box["y"] + FIRST["y"] + 9, steps=4)
    expect(page.locator(".map-lasso")).to_be_visible()
    page.keyboard.press("Escape")
    page.mouse.up()  # the end of a given up drag opens no node
    page.locator("[data-map]").focus()
    for key in ("Home", " ", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    expect(selected).to_have_text("3 nodes selected")
    page.keyboard.press(" ")
    expect(selected).to_have_text("2 nodes selected")
    page.get_by_role("button", name="Label pool").click()
    page.wait_for_url("**/operations/new?*")
    assert "2 nodes" in page.inner_text("main")


@pytest.mark.nightly
def test_who_may_not_act_selects_nothing_by_a_drag(window):
    page = window("viewer").page
    drawn(page)
    box = page.locator(".map canvas").first.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 15)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 90, steps=4)

    assert "/nodes/" not in page.url
    assert page.locator(".map-selection, .map-lasso, [data-picked]").count() == 0
