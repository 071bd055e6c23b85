"""A timeline page by page: each line once, however many are of one instant."""

from datetime import timedelta
from html import unescape

import pytest

from tests import make
from tests.callers import calling
from tests.fleet.history.test_placements import placed
from tests.make import NOON
from tests.pages import page, visiting
from tests.variants import nightly_but_first

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return make.a_user("ada", role="admin")


@pytest.fixture
def node():
    """Forty lines of one instant, of all that have lines, between an older and a newer one."""
    cluster = make.a_cluster()
    row = make.a_node(cluster, "gpu-1")
    finding = make.a_finding(cluster, node=row)
    make.a_node_event(row, "The newest.", at=NOON + timedelta(hours=1))
    for number in range(15):
        make.a_node_event(row, f"Event {number}.", at=NOON)
        make.an_event_of(finding, "finding.resolved", reason=f"of test {number}")
    for number in range(5):
        placed(row, f"begun-{number}", since=0, until=None)
        placed(row, f"ended-{number}", since=200, until=0)
    make.a_node_event(row, "The oldest.", at=NOON - timedelta(hours=300))
    return row


@pytest.mark.parametrize("most", nightly_but_first([7, 1, 100]))
def test_rest_has_each_line_once(node, ada, most):
    lines, asked = [], {"most": most}
    while some := calling(ada).get(f"/api/v1/nodes/{node.pk}/timeline", asked).json():
        lines += some
        asked |= {"before": some[-1]["at"], "below": some[-1]["id"]}

    assert len(lines) == len({(line["at"], line["id"]) for line in lines}) == 47
    assert [lines[0]["sentence"], lines[-1]["sentence"]] == ["The newest.", "The oldest."]


def test_the_page_has_each_line_once(node, ada):
    for number in range(15, 250):
        make.a_node_event(node, f"Event {number}.", at=NOON)
    path, pages = f"/nodes/{node.pk}/history", []
    while path:
        pages.append(page(visiting(ada), path))
        path = next((unescape(link) for link in pages[-1].links if "before=" in link), "")
        path = f"/nodes/{node.pk}/history{path}" if path.startswith("?") else path

    text = " ".join(one.text for one in pages)
    assert len(pages) == 4
    assert all(text.count(f" Event {number}.") == 1 for number in range(250))
    assert all(text.count(f" as of test {number}:") == 1 for number in range(15))


def test_what_is_no_line_is_refused(node, ada):
    assert calling(ada).get(f"/api/v1/nodes/{node.pk}/timeline?below=x").status_code == 400
    assert (
        "This is not a line of a history" in page(visiting(ada), f"/nodes/{node.pk}/history?below=9-x", status=400).text
    )
