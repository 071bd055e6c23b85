"""The fleet page in Chromium, again and again: until the map is there, and what a batch of changes takes."""

import base64
import json
import shutil
import statistics
import struct
import tempfile
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.browsing.trace import Trace
from benchmarks.figures import Figures, percentile
from demo.parts import Fleet
from demo.stack import PASSWORD, Stack
from demo.visitor import Visitor, wait_until

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SCREEN: Any = {"width": 1600, "height": 900}
SEEN_S, PATIENCE_MS = 600.0, 60_000
NODES_A_BATCH = 50
REST_MS = 250  # between two batches: what one causes is over before the next
OF_A_BATCH_MS = 200
SETTLE_MS = 3000
TRACED = ["devtools.timeline", "disabled-by-default-devtools.timeline", "blink.user_timing", "__metadata"]
DRAWN = "[data-map][data-state='drawn']"
PAINTED = "performance.getEntriesByName('map-painted')[0].startTime"
BYTES = """performance.getEntriesByType('resource').filter(({name}) => name.includes('/parts/fleet/map'))
    .map(({name, decodedBodySize, encodedBodySize}) => [new URL(name).pathname, decodedBodySize, encodedBodySize])"""
FITS = "document.querySelector('[data-map] canvas').getBoundingClientRect().bottom"
TELL = "detail => document.dispatchEvent(new CustomEvent('live:changed', { detail }))"


@dataclass(frozen=True)
class Length:
    loads: int
    batches: int


FULL = Length(loads=7, batches=40)
SHORT = Length(loads=1, batches=3)


@dataclass(frozen=True)
class Map:
    """What a batch needs to know of it."""

    cluster_id: int
    seq: int
    keys: list[int]
    states: bytes
    gpus: list[bytes]

    @classmethod
    def read(cls, person: Visitor) -> "Map":
        text = person.http.get("/parts/fleet/map").raise_for_status().content
        (length,) = struct.unpack("<I", text[4:8])
        head, rest = json.loads(text[8 : 8 + length]), text[8 + length :]
        cluster = head["clusters"][0]
        nodes = cluster["nodes"]
        sizes = rest[nodes : 2 * nodes]
        ends = list(accumulate(sizes, initial=2 * nodes))
        keys = list(accumulate(person.get("/parts/fleet/map/index")["keys"]))
        gpus = [rest[begin:end] for begin, end in pairwise(ends)]
        return cls(cluster["id"], cluster["seq"], keys, rest[:nodes], gpus)

    def batch(self, number: int) -> dict[str, Any]:
        """As a flush would tell it: nodes from all over the map, whose GPUs are taken or given back."""
        step = max(1, len(self.keys) // NODES_A_BATCH)
        nodes = [self._node(at, number) for at in range(number % step, len(self.keys), step)]
        seq = self.seq + 1000 + number
        return {
            "topic": f"cluster-{self.cluster_id}",
            "seq": seq,
            "prev": self.seq,
            "kinds": ["map"],  # of none of the other parts of the page, which would be fetched again
            "nodes": nodes[:NODES_A_BATCH],
        }

    def _node(self, at: int, number: int) -> list[Any]:
        state, gpus = self.states[at] & 0x1F, bytes(0x10 * (number % 2) for _ in self.gpus[at])
        return [self.keys[at], state & 0x0F, base64.b64encode(bytes((state, len(gpus))) + gpus).decode()]


def program() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


def browse(figures: Figures, folder: Path, fleet: Fleet, length: Length) -> None:
    with Stack(folder, fleet) as stack, chromium() as browser:
        person = Visitor(stack.url, "admin").sign_in(PASSWORD)
        stack.manage(stack.suggesting())
        wait_until(lambda: is_settled(person, fleet), what="the fleet", timeout_s=SEEN_S)
        page = browser.new_page(viewport=SCREEN, base_url=stack.url)
        page.set_default_timeout(PATIENCE_MS)
        sign_in(page)
        first_paint(figures, page, length)
        batches(figures, browser, page, Map.read(person), length)


def chromium() -> Any:
    return _Chromium()


class _Chromium:
    def __enter__(self) -> Browser:
        self._playwright = sync_playwright().start()
        self._browser = self._playwright.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        return self._browser

    def __exit__(self, *_: object) -> None:
        self._browser.close()
        self._playwright.stop()


def is_settled(person: Visitor, fleet: Fleet) -> bool:
    cluster = next(iter(person.all("/api/v1/clusters")), None)
    return bool(cluster and cluster["counts"]["gpu_nodes"] == fleet.nodes and cluster["counts"]["gpus_allocated"])


def sign_in(page: Page) -> None:
    page.goto("/sign-in")
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.click("main button")
    page.wait_for_selector(DRAWN)


def first_paint(figures: Figures, page: Page, length: Length) -> None:
    """From the click that leads to the page until its map is painted, the page's own time at the server included."""
    took, after_bytes = [], []
    for _ in range(length.loads):
        page.goto("/")
        page.wait_for_selector(DRAWN)
        painted = page.evaluate(PAINTED)
        came = page.evaluate("""Math.max(...performance.getEntriesByType('resource')
            .filter(({name}) => name.includes('/parts/fleet/map')).slice(0, 2).map(({responseEnd}) => responseEnd))""")
        took.append(painted)
        after_bytes.append(painted - came)
    each = [round(one) for one in took]
    figures.at_most("map_first_paint_ms", statistics.median(took), 1000, "ms", each=each)
    figures.at_most("map_paint_after_bytes_ms", statistics.median(after_bytes), 200, "ms")
    sizes = {path: (decoded, encoded) for path, decoded, encoded in page.evaluate(BYTES)}
    decoded, encoded = sizes["/parts/fleet/map"]
    figures.at_most("map_bytes", decoded, 60_000, "bytes", packed=encoded)
    decoded, encoded = sizes["/parts/fleet/map/index"]
    figures.beside("map_index_bytes", decoded, "bytes", packed=encoded)
    figures.at_most("map_bottom_px", page.evaluate(FITS), SCREEN["height"], "px")


def batches(figures: Figures, browser: Browser, page: Page, there: Map, length: Length) -> None:
    """What the page's main thread and raster work from a message on, until the next is due."""
    with tempfile.TemporaryDirectory(prefix="quarterdeck-trace-") as folder:
        path = Path(folder) / "trace.json"
        page.wait_for_timeout(SETTLE_MS)
        browser.start_tracing(page=page, path=path, categories=TRACED)
        for number in range(length.batches):
            page.evaluate(TELL, there.batch(number))
            page.wait_for_timeout(REST_MS)
        browser.stop_tracing()
        trace = Trace.read(json.loads(path.read_bytes())["traceEvents"])
    begun = trace.marks.get("map-batch", [])
    if len(begun) != length.batches:
        figures.lacks("map_batch_ms", f"{len(begun)} of {length.batches} batches are in the trace")
        return
    spans = [(at, at + OF_A_BATCH_MS) for at in begun]
    cpu, wall = [trace.cpu_ms(*span) for span in spans], [trace.wall_ms(*span) for span in spans]
    more = {"p95": percentile(cpu, 0.95), "wall_p50": statistics.median(wall)}
    told = {name: round(each, 1) for name, each in more.items()}
    figures.at_most("map_batch_ms", statistics.median(cpu), 16, "ms", **told, nodes_a_batch=NODES_A_BATCH)
