"""A server that does not answer is said once above the page, and by each part that holds something."""

import pytest

from tests import make
from tests.browser.test_found_at_once import PARTS, answer_of, opened
from tests.pages import visiting

pytestmark = pytest.mark.django_db
ABOVE, PANEL = ("unwatched", "stop-banner"), "fleet-clusters"
FAIL = """([state, ids]) => {
  document.documentElement.dataset.link = state;
  for (const id of ids) document.getElementById(id).dataset.error = "The server did not answer.";
  const drawn = ids.map((id) => getComputedStyle(document.getElementById(id), "::before"));
  return [drawn.map(({ display }) => display), document.querySelector(".topbar").offsetHeight];
}"""


def test_while_nothing_has_telemetry_only_what_holds_something_says_so_beside_the_link(chromium):
    make.a_cluster("demo")
    client = visiting(make.a_user("ada", role="viewer"))
    answers = {path: answer_of(client.get(path)) for path in ("/", *PARTS)}

    with chromium.new_page(viewport={"width": 1600, "height": 900}) as page:
        opened(page, answers, "")
        high = page.locator(".topbar").evaluate("bar => bar.offsetHeight")
        ids = [*ABOVE, PANEL, "approvals-count"]
        seen = {state: page.evaluate(FAIL, [state, ids]) for state in ("live", "stale", "lost")}

    assert seen["live"] == [["block", "block", "block", "inline"], high]
    assert seen["stale"] == seen["lost"] == [["none", "none", "block", "inline"], high]
