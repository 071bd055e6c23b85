"""What the tests of pages share: a page read as a browser reads it, strictly."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.http import HttpRequest
from django.test import Client

from people.sign_in.session_store import SessionStore, begin_session

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
SHAPES = {"rect", "path", "circle"}  # SVG's, written with a closing slash
HOSTILE = """<script>alert(1)</script>"'&<img src=x onerror=alert(2)>"""


class Page(HTMLParser):
    """Fails on an element closed by another, on one that stays open, on a doubled id, and on what the CSP forbids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open, f"never closed: {self.open}"
        assert len(set(self.ids)) == len(self.ids), f"twice: {sorted({i for i in self.ids if self.ids.count(i) > 1})}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert "style" not in given, f"an inline style on {tag}: the CSP drops it"
        assert not [name for name in given if name.startswith("on")], f"an inline script on {tag}"
        assert tag != "script" or given.get("src"), "an inline script"
        if given.get("id"):
            self.ids.append(given["id"])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID | SHAPES, f"{tag} cannot close itself"

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} closes nothing"
        assert self.open[-1] == tag, f"{tag} closes {self.open[-1]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def wrong_beside(html: str, field: str) -> str:
    """What is said to be wrong with the field of this id. Blank: nothing."""
    its = html.partition(f' id="{field}"')[2].partition("</div>")[0]
    found = re.search(r'<span class="wrong"[^>]*>([^<]*)<', its)
    return unescape(found[1]) if found else ""


def visiting(user) -> Client:
    """A client of somebody who signed in just now, with one write. `force_login` writes three times."""
    request, session = HttpRequest(), SessionStore()
    backend = settings.AUTHENTICATION_BACKENDS[0]
    session.update({SESSION_KEY: str(user.pk), BACKEND_SESSION_KEY: backend})
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    request.session = session
    begin_session(request)
    session.create()
    client = Client()
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    return client


def page(client: Client, path: str, *, status: int = 200) -> Page:
    response = client.get(path)
    assert response.status_code == status, f"{path} answered {response.status_code}"
    return Page(response.content.decode())


@pytest.fixture
def queries_of(db):
    """How many queries a path costs."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    def count(client: Client, path: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(path).status_code == 200
        return len(captured)

    return count
