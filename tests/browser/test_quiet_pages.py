"""What an open page asks for: nothing while nothing is told, and at once what is. In a browser, without a stack."""

import mimetypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import time_machine
from playwright.sync_api import Browser, Page, Route

from fleet.messages.announce import cluster_group
from health.announce import telemetry_group
from tests import make
from tests.browser.outside import tell
from tests.make import NOON
from tests.pages import visiting
from tests.patience import PATIENCE_MS

pytestmark = pytest.mark.django_db
STATIC = Path(__file__).parents[2] / "static"
HOME = "http://quarterdeck.test"
# What the clock alone changes, or what must not be missed though a message is lost: on every page but the last of them.
BY_THE_CLOCK = ("/parts/unwatched", "/parts/stop", "/parts/approvals/count", "/parts/restraints/")
# A link that is live, and that nothing new comes through.
QUIET = """window.WebSocket = class {
  constructor() { this.beats = setInterval(() => this.onmessage?.({ data: JSON.stringify({
    type: "heartbeat", server_time: new Date(Date.now()).toISOString(), seq: {}, last_seen: {} }) }), 2000); }
  close() { clearInterval(this.beats); } };"""
LAST = "/parts/last"
MINUTES_MS = 130_000
STEP_MS = 5000


@pytest.fixture(autouse=True)
def _at_noon():
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def cluster():
    made = make.a_cluster("demo")
    node = make.a_node(made, "gpu-1", gpus=8)
    make.a_source(made, answered_at=NOON)
    make.a_finding(made, node=node, title="Row remap failed on GPU 3.", severity="critical")
    return made


class Opened:
    """A page of ours, whose parts are asked for and never come: what it asked for is written down."""

    def __init__(self, page: Page, html: bytes, address: str) -> None:
        self.page, self.html, self.asked = page, html, list[str]()
        page.clock.install()
        page.add_init_script(QUIET)
        page.route("**/*", self._serve)
        page.goto(f"{HOME}{address}")
        page.wait_for_selector("#link[data-state='live']", state="attached")
        self.asked_within(3000)

    def _serve(self, route: Route) -> None:
        path = route.request.url.removeprefix(HOME).partition("?")[0]
        file = STATIC / path.removeprefix("/static/")
        if path.startswith("/static/") and file.is_file():
            route.fulfill(body=file.read_bytes(), content_type=mimetypes.guess_type(file.name)[0])
        elif route.request.is_navigation_request():
            route.fulfill(body=self.html, content_type="text/html")
        else:
            if path.startswith("/parts/") and not path.startswith(BY_THE_CLOCK):
                self.asked.append(path)
            route.fulfill(status=204)

    def told(self, **message: object) -> None:
        tell(self.page, **message)

    def asked_within(self, ms: int) -> list[str]:
        """Which parts it asks for in this time, by its own clock."""
        self.asked.clear()
        for _ in range(0, ms, STEP_MS):
            self.page.clock.fast_forward(min(ms, STEP_MS))  # each timer once a step: not every frame of two minutes
        self.page.evaluate("address => fetch(address).then(() => true)", LAST)  # what was asked before has come by then
        return sorted(path for path in self.asked if path != LAST)


@contextmanager
def opened(chromium: Browser, path: str) -> Iterator[Opened]:
    html = visiting(make.a_user("ada", role="viewer")).get(path).content
    with chromium.new_page() as page:
        page.set_default_timeout(PATIENCE_MS)
        yield Opened(page, html, path)


def place(cluster, name: str) -> tuple[str, str]:
    """Its page, and the part that is all of it."""
    node = cluster.nodes.get()
    return {
        "cluster": (f"/clusters/{cluster.pk}", f"/parts/clusters/{cluster.pk}"),
        "findings": ("/findings", "/parts/findings"),
        "node": (f"/nodes/{node.pk}", f"/parts/nodes/{node.pk}"),
        "gpu": (f"/nodes/{node.pk}/gpus/3", f"/parts/nodes/{node.pk}/gpus/3"),
    }[name]


@pytest.mark.parametrize("name", ["cluster", "findings", "node", "gpu"])
def test_nothing_is_fetched_while_nothing_is_told_and_what_is_told_of_within_two_seconds(cluster, chromium, name):
    path, part = place(cluster, name)

    with opened(chromium, path) as page:
        before = page.asked_within(MINUTES_MS)
        page.told(topic=cluster_group(cluster.pk), kinds=["findings"], nodes=[], seq=1, prev=1)
        told = page.asked_within(2000)
        after = page.asked_within(MINUTES_MS)

    assert before == []
    assert told.count(part) == 1
    assert after.count(part) == 0


def test_a_round_of_telemetry_is_news_for_what_says_it_on_the_page_of_a_cluster_alone(cluster, chromium):
    path, part = place(cluster, "cluster")

    with opened(chromium, path) as page:
        page.told(topic=telemetry_group(cluster.pk), seq=1)
        told = page.asked_within(20_000)

    assert told == [f"{part}/telemetry"]


def test_an_hour_that_is_written_down_is_news_for_the_bars_of_a_node_alone(cluster, chromium):
    path, part = place(cluster, "node")

    with opened(chromium, path) as page:
        page.told(topic=cluster_group(cluster.pk), kinds=["hours"], nodes=[], seq=1, prev=1)
        told = page.asked_within(20_000)

    assert told == [f"{part}/hours"]
