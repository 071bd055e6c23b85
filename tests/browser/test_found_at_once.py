"""One sick GPU among a thousand nodes: whoever opens the home page reads which, without a scroll or a click."""

import mimetypes
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from playwright.sync_api import Browser, Page, Route, expect

from fleet.map_cells.cell import CRITICAL, GpuState, NodeCells
from fleet.models import Cluster, Gpu, Node
from fleet.states.node import NodeState
from health.evaluation.finding_counts import count_on_nodes
from tests import make
from tests.browser.conftest import PHONE, WIDE
from tests.browser.outside import tell
from tests.browser.test_map import legend
from tests.make import NOON
from tests.pages import visiting
from tests.patience import PATIENCE_MS

pytestmark = pytest.mark.django_db
STATIC = Path(__file__).parents[2] / "static"
HOME = "http://quarterdeck.test"
PARTS = ("/parts/findings/strip", "/parts/plans/strip", "/parts/fleet/map", "/parts/fleet/map/index")
NOBODY_TELLS = "window.WebSocket = class { close() {} };"
HOT = "GPU 3 of gpu-0731 has had 92 °C for 5 minutes."
# By kind, the different lightnesses of its swatch (Rec. 709 luma).
GREY_SWATCHES = """() => { const found = {};
    for (const button of document.querySelectorAll('.map-kind:not([hidden])')) {
        const swatch = button.querySelector('canvas'), grey = new Set();
        const d = swatch.getContext('2d').getImageData(0, 0, swatch.width, swatch.height).data;
        for (let i = 0; i < d.length; i += 4)
            grey.add(Math.round(0.2126 * d[i] + 0.7152 * d[i + 1] + 0.0722 * d[i + 2]));
        found[button.dataset.kind] = [...grey];
    }
    return found; }"""
Answers = Mapping[str, tuple[bytes, str]]  # by path: the body and its type


@pytest.fixture(autouse=True)
def _at_noon():
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture
def fleet():
    """A thousand nodes; of one a GPU is hot, and of others older and lesser things are wrong."""
    cluster = make.a_cluster("demo")
    pool = make.a_pool(cluster, "h100")
    nodes = Node.objects.bulk_create(a_row(cluster, number) for number in range(1000))
    Gpu.objects.bulk_create(Gpu(node=node, index=index) for node in nodes for index in range(8))
    pool.nodes.set(nodes)
    sick = next(node for node in nodes if node.name == "gpu-0731")
    long_ago = NOON - timedelta(days=3)
    for node in nodes[:20]:
        make.a_finding(cluster, node=node, title="PCIe replays. " * 20, since=long_ago, opened_at=long_ago)
    for node in nodes[20:30]:
        make.a_finding(cluster, node=node, title="Not supported. " * 20, since=long_ago, opened_at=None)
    make.a_finding(cluster, "GPU 3 of gpu-0731", node=sick, rule="gpu-hot", severity="critical", title=HOT)
    count_on_nodes(cluster)
    return make.counted(sick)


def a_row(cluster, number: int) -> Node:
    eight = {"nvidia.com/gpu": 8}
    return Node(
        cluster=cluster, name=f"gpu-{number:04}", uid=f"uid-{number}", created_at=NOON, changed_at=NOON, is_ready=True,
        is_gpu_node=True, gpu_product="NVIDIA-H100-80GB-HBM3", gpu_capacity=8, gpu_allocatable=8, gpu_expected=8,
        capacity=eight, allocatable=eight, expected=eight, physical_whole=8, physical_gpus=8,
    )  # fmt: skip


def test_the_first_screen_names_it_and_leads_to_it(fleet, chromium):
    client = visiting(make.a_user("ada", role="viewer"))
    for size in ({"width": 1600, "height": 900}, PHONE):
        with home(chromium, client, viewport=size) as page:
            first = page.locator("#findings-strip .finding").first
            expect(first).to_contain_text(HOT, timeout=PATIENCE_MS)
            ends_at = first.evaluate("element => element.getBoundingClientRect().bottom")
            links = [link.get_attribute("href") for link in first.locator("a").all()]
        assert ends_at <= size["height"]

    finding, gpu = (client.get(link, follow=True) for link in links)
    assert HOT in finding.content.decode()
    assert gpu.request["PATH_INFO"] == f"/nodes/{fleet.pk}/gpus/3"
    assert HOT in client.get(f"/parts/nodes/{fleet.pk}/gpus/3/findings").content.decode()


def test_the_map_tells_the_sick_node_from_those_that_are_warned(fleet, chromium):
    """The thirty others have open findings, too: by the state of a node they are alike."""
    client = visiting(make.a_user("ada", role="viewer"))
    with home(chromium, client, viewport=WIDE) as page:
        counted = legend(page)
        page.keyboard.press("Tab")
        page.locator("[data-map]").focus()
        page.keyboard.press("Home")
        said = page.locator("[data-map] [aria-live]").inner_text()
        page.click("[data-kind='findings-critical']")
        expect(page.locator("[data-map]")).to_have_attribute("data-drawn", "1")
        page.click("[data-map-clear]")
        page.check("[data-map-faults]")
        expect(page.locator("[data-map]")).to_have_attribute("data-drawn", "31")

    assert counted == {"critical findings": 1, "warnings": 30, "ready": 969}
    assert said.startswith("gpu-0731, critical findings, ")
    state = client.get(f"/api/v1/nodes/{fleet.pk}").json()
    assert (state["state"], state["unresolved"], state["critical"]) == ("has-findings", 1, 1)
    rows = client.get("/parts/fleet/nodes").content.decode()
    assert rows.index("gpu-0731") < rows.index("gpu-0000")
    assert "1 critical finding" in rows


def test_an_address_that_asks_for_findings_asks_for_both_kinds(fleet, chromium):
    client = visiting(make.a_user("ada", role="viewer"))
    with home(chromium, client, "?map_only=has-findings", viewport=WIDE) as page:
        expect(page.locator("[data-map]")).to_have_attribute("data-drawn", "31")


def test_a_finding_that_becomes_critical_is_drawn_from_its_message_and_counted(fleet, chromium):
    (cluster,) = Cluster.objects.all()
    warned = Node.objects.get(name="gpu-0003")
    with home(chromium, visiting(make.a_user("ada", role="viewer")), viewport=WIDE) as page:
        before = drawn_pixels(page)
        cells = NodeCells(NodeState.HAS_FINDINGS | CRITICAL, bytes(8))
        told = [[warned.pk, NodeState.HAS_FINDINGS, b64encode(cells.alone).decode()]]
        tell(page, topic=f"cluster-{cluster.pk}", seq=1, prev=0, nodes=told)

        expect(page.locator("[data-kind='findings-critical'] b")).to_have_text("2")
        expect(page.locator("[data-kind='findings-warned'] b")).to_have_text("29")
        assert drawn_pixels(page) != before


KINDS = [
    (NodeState.GPUS_MISSING, bytes([0] * 7 + [GpuState.MISSING]), "GPUs missing, critical"),
    (NodeState.HAS_FINDINGS, bytes(8), "critical findings"),
    (NodeState.UPGRADING, bytes(8), "upgrading"),
    (NodeState.NOT_READY, bytes(8), "not ready"),
]


def test_each_node_is_of_one_kind_whatever_else_is_true_of_it(fleet, chromium):
    (cluster,) = Cluster.objects.all()
    ready = Node.objects.filter(name__gte="gpu-0990")
    with home(chromium, visiting(make.a_user("ada", role="viewer")), viewport=WIDE) as page:
        counted = legend(page)
        for seq, (node, (state, gpus, kind)) in enumerate(zip(ready, KINDS, strict=False), 1):
            told = [[node.pk, state, b64encode(NodeCells(state | CRITICAL, gpus).alone).decode()]]
            tell(page, topic=f"cluster-{cluster.pk}", seq=seq, prev=seq - 1, nodes=told)
            expect(page.locator("[data-kind='ready'] b")).to_have_text(str(969 - seq))
            before, counted = counted, legend(page)

            assert counted == before | {"ready": 969 - seq, kind: before.get(kind, 0) + 1}
            assert sum(counted.values()) == 1000


def test_it_is_told_apart_where_no_colour_is_seen(fleet, chromium):
    """By the lightness of each pixel alone, in the legend: with another pattern, not with another colour."""
    client = visiting(make.a_user("ada", role="viewer"))
    for scheme in ("light", "dark"):
        with home(chromium, client, viewport=WIDE, color_scheme=scheme) as page:
            looks = page.evaluate(GREY_SWATCHES)

        assert sorted(looks) == ["findings-critical", "findings-warned", "ready"]
        assert len(looks["findings-critical"]) == 2
        assert len(looks["findings-warned"]) == len(looks["ready"]) == 1


def drawn_pixels(page: Page) -> str:
    return page.evaluate("document.querySelector('.map canvas').toDataURL()")


@contextmanager
def home(chromium: Browser, client, query: str = "", **given) -> Iterator[Page]:
    """The home page as that person has it, with its map drawn; there is no stack behind it."""
    answers = {path: answer_of(client.get(path)) for path in ("/", *PARTS)}
    with chromium.new_context(**given) as context:
        page = context.new_page()
        opened(page, answers, query)
        expect(page.locator("[data-map]")).to_have_attribute("data-state", "drawn", timeout=PATIENCE_MS)
        yield page


def answer_of(response) -> tuple[bytes, str]:
    assert response.status_code == 200
    return response.content, response["Content-Type"]


def opened(page: Page, answers: Answers, query: str) -> None:
    def serve(route: Route) -> None:
        path = route.request.url.removeprefix(HOME).partition("?")[0]
        file = STATIC / path.removeprefix("/static/")
        if path in answers:
            body, kind = answers[path]
            route.fulfill(body=body, content_type=kind)
        elif path.startswith("/static/") and file.is_file():
            route.fulfill(body=file.read_bytes(), content_type=mimetypes.guess_type(file.name)[0])
        else:
            route.fulfill(status=404)

    page.add_init_script(NOBODY_TELLS)
    page.route("**/*", serve)
    page.goto(f"{HOME}/{query}")
