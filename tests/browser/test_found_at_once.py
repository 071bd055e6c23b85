"""One sick GPU among a thousand nodes: whoever opens the home page reads which, without a scroll or a click."""

import mimetypes
import shutil
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
import time_machine
from playwright.sync_api import Page, Route, expect, sync_playwright

from fleet.models import Gpu, Node
from tests import make
from tests.browser.conftest import PHONE, PROGRAMS
from tests.make import NOON
from tests.pages import visiting
from tests.patience import PATIENCE_MS

pytestmark = pytest.mark.django_db
STATIC = Path(__file__).parents[2] / "static"
HOME = "http://quarterdeck.test"
PARTS = ("/parts/findings/strip", "/parts/plans/strip", "/parts/fleet/map", "/parts/fleet/map/index")
NOBODY_TELLS = "window.WebSocket = class { close() {} };"
HOT = "GPU 3 of gpu-0731 has had 92 °C for 5 minutes."
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
        make.a_finding(cluster, node=node, sentence="PCIe replays. " * 20, since=long_ago, opened_at=long_ago)
    for node in nodes[20:30]:
        make.a_finding(cluster, node=node, sentence="Not supported. " * 20, since=long_ago, opened_at=None)
    make.a_finding(cluster, "GPU 3 of gpu-0731", node=sick, rule="gpu-hot", severity="critical", sentence=HOT)
    Node.objects.filter(findings__isnull=False).update(unresolved=1)
    return make.counted(sick)


def a_row(cluster, number: int) -> Node:
    eight = {"nvidia.com/gpu": 8}
    return Node(
        cluster=cluster, name=f"gpu-{number:04}", uid=f"uid-{number}", created_at=NOON, changed_at=NOON, is_ready=True,
        is_gpu_node=True, gpu_product="NVIDIA-H100-80GB-HBM3", gpu_capacity=8, gpu_allocatable=8, gpu_expected=8,
        capacity=eight, allocatable=eight, expected=eight, physical_whole=8, physical_gpus=8,
    )  # fmt: skip


@pytest.mark.parametrize("size", [{"width": 1600, "height": 900}, PHONE], ids=["screen", "phone"])
def test_the_first_screen_names_it_and_leads_to_it(fleet, size):
    client = visiting(make.a_user("ada", role="viewer"))
    answers = {path: answer_of(client.get(path)) for path in ("/", *PARTS)}

    with sync_playwright() as playwright:
        program = next(filter(None, map(shutil.which, PROGRAMS)))
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_context(viewport=size).new_page()
        opened(page, answers)
        first = page.locator("#findings-strip .finding").first
        expect(first).to_contain_text(HOT, timeout=PATIENCE_MS)
        expect(page.locator(".map")).to_have_attribute("data-state", "drawn", timeout=PATIENCE_MS)
        ends_at = first.evaluate("element => element.getBoundingClientRect().bottom")
        links = [first.locator("a").nth(number).get_attribute("href") for number in range(first.locator("a").count())]
        browser.close()

    assert ends_at <= size["height"]
    finding, gpu = (client.get(link, follow=True) for link in links)
    assert HOT in finding.content.decode()
    assert gpu.request["PATH_INFO"] == f"/nodes/{fleet.pk}/gpus/3"
    assert HOT in client.get(f"/parts/nodes/{fleet.pk}/gpus/3/findings").content.decode()


def answer_of(response) -> tuple[bytes, str]:
    assert response.status_code == 200
    return response.content, response["Content-Type"]


def opened(page: Page, answers: Answers) -> None:
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
    page.goto(f"{HOME}/")
