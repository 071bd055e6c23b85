"""A screen reader tells each button of a page by its name."""

from html.parser import HTMLParser

import pytest

from people.models import ApiToken
from rollouts.commands import fleet_freezes
from rollouts.commands.fleet_freezes import Where
from tests import make
from tests.make import NOON
from tests.pages import page, visiting


class Buttons(HTMLParser):
    """The names of those that are not in a dialog: of these one is open at a time."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self._in_dialog = self._in_button = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self._in_dialog = self._in_dialog or tag == "dialog"
        if self._in_dialog or not (tag == "button" or "button" in (given.get("class") or "").split()):
            return
        self.names.append(given.get("aria-label") or "")
        self._in_button = not self.names[-1]

    def handle_data(self, data):
        if self._in_button:
            self.names[-1] = f"{self.names[-1]} {data.strip()}".strip()

    def handle_endtag(self, tag):
        self._in_button = self._in_button and tag not in {"button", "a"}
        self._in_dialog = self._in_dialog and tag != "dialog"


@pytest.mark.django_db
@pytest.mark.parametrize("role", ["admin", "viewer"])
def test_no_two_buttons_of_a_page_have_one_name(role, now):
    north, south = make.a_cluster("north"), make.a_cluster("south")
    user = make.a_user("ada", role=role)
    for cluster in (north, south):
        make.give(user, "viewer", on=cluster)
        make.a_window(cluster)
        fleet_freezes.freeze(Where(cluster), actor="amy", reason="x", now=NOON)
    for name in ("one", "two"):
        ApiToken.issue(user=user, name=name, permissions=["see"], now=NOON, expires_at=None)
    visitor = visiting(user)

    pages = {"/account": 2, "/freezes": 4} | ({f"/people/{user.pk}": 5} if role == "admin" else {})
    for path, least in pages.items():
        page(visitor, path)
        names = Buttons(visitor.get(path).content.decode()).names
        assert len(names) > least
        assert sorted(names) == sorted(set(names))
