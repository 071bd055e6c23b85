import re

import pytest
from django.contrib.staticfiles import finders


@pytest.fixture
def page(client) -> str:
    return client.get("/api/v1/docs").content.decode()


def test_no_script_is_inline(page):
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)

    assert len(scripts) == 5
    assert all("src=" in attributes and not body.strip() for attributes, body in scripts)
    assert not re.search(r"\son\w+=|javascript:", page)


def test_its_own_policy_allows_written_styles_but_no_foreign_script(client):
    policy = dict(
        part.strip().split(" ", 1) for part in client.get("/api/v1/docs")["Content-Security-Policy"].split(";")
    )

    assert policy["script-src"] == "'self'"
    assert policy["style-src"] == "'self' 'unsafe-inline'"


def test_other_pages_keep_theirs(client):
    assert "unsafe-inline" not in client.get("/healthz")["Content-Security-Policy"]


def test_everything_it_loads_is_served_from_here(page):
    paths = re.findall(r'(?:src|href)="([^"]+)"', page)

    assert all(path.startswith("/") for path in paths)
    assert all(finders.find(path.removeprefix("/static/")) for path in paths if path.startswith("/static/"))


def test_it_is_dark_where_our_pages_are(page):
    assert page.index("js/theme.js") < page.index("js/docs-theme.js") < page.index("swagger-ui-bundle")


def test_its_script_reads_our_schema(client):
    script = client.get("/api/v1/docs?script=")

    assert script["Content-Type"] == "application/javascript"
    assert "/api/v1/schema" in script.content.decode()
