"""The menu: four groups, where a page is in them, and the pages that it leads to."""

import re

import pytest
from django.urls import URLPattern, get_resolver, reverse
from django.urls.resolvers import RoutePattern

from config.menu import GROUPS
from health.rules.base import Severity
from tests import make
from tests.pages import page, visiting


def marked(html: str) -> list[str]:
    """The titles of the group and of the entry that are marked as the current ones."""
    above = html.partition("<main")[0]
    return [title.strip() for title in re.findall(r'<a href="[^"]*" aria-current="(?:page|true)">([^<]+)', above)]


def test_every_entry_leads_to_a_page(db):
    root = visiting(make.a_user("root", role="admin"))
    make.a_fleet()

    for group in GROUPS:
        for entry in group.entries:
            answer = root.get(entry.href, follow=True)
            assert answer.status_code == 200
            assert marked(answer.content.decode()) == [group.title, "Map" if entry.title == "Nodes" else entry.title]


def test_every_page_has_its_place_in_the_menu(there):
    root = visiting(make.a_user("root", role="admin"))
    for route in get_resolver().url_patterns:
        for each in getattr(route, "url_patterns", ()):
            names = each.pattern.converters
            if (
                not isinstance(each, URLPattern)
                or not isinstance(each.pattern, RoutePattern)
                or not each.name
                or str(each.pattern).startswith("parts/")  # no page
                or not names.keys() <= there.keys()
            ):
                continue
            answer = root.get(reverse(each.name, kwargs={name: there[name] for name in names}))
            if answer.status_code == 200 and b'class="places"' in getattr(answer, "content", b""):
                assert len(marked(answer.content.decode())) == 2, each.name


@pytest.mark.parametrize("role", ["viewer", "operator", "admin"])
def test_only_an_admin_is_shown_the_page_of_people(db, role):
    seen = page(visiting(make.a_user("ada", role=role)), reverse("clusters"))

    assert (reverse("people") in seen.links) == (role == "admin")


def test_a_page_below_an_entry_marks_it(db):
    node = make.a_node(make.a_cluster(), "gpu-0")
    html = visiting(make.a_user("ada", role="viewer")).get(reverse("node", args=[node.pk])).content.decode()

    assert marked(html) == ["Fleet", "Nodes"]
    assert 'aria-current="true">Nodes' in html


def test_a_count_is_shown_once_on_every_page(db):
    """On its entry where its group is open, else on the group."""
    ada = visiting(make.a_user("ada", role="viewer"))

    for path in ("fleet", "findings", "plans", "clusters"):
        ids = page(ada, reverse(path)).ids
        assert ids.count("criticals-count") == ids.count("approvals-count") == 1


def test_the_count_of_criticals_is_of_open_ones_that_the_person_sees(db, client):
    north, south = make.a_cluster("north"), make.a_cluster("south")
    make.a_finding(north, severity=Severity.CRITICAL)
    make.a_finding(south, severity=Severity.CRITICAL)
    make.a_finding(north, "another", severity=Severity.WARNING)
    make.a_finding(north, "a third", severity=Severity.CRITICAL, state="muted")
    ada = make.a_user("ada", role="viewer", on=north)

    assert page(visiting(ada), reverse("criticals-count")).text == "1 open critical"


def test_the_ledger_without_a_cluster_leads_to_the_one_that_is_seen(db):
    south = make.a_cluster("south")
    ada = visiting(make.a_user("ada", role="viewer", on=south))
    eve = visiting(make.a_user("eve", role="viewer", on=make.a_cluster("north")))
    make.a_cluster("away")

    assert ada.get(reverse("ledgers")).url == reverse("ledger", args=[south.pk])
    assert reverse("ledger", args=[south.pk]) not in page(eve, eve.get(reverse("ledgers")).url).links


def test_the_status_says_which_check_fails(db, monkeypatch):
    monkeypatch.setattr("config.status_page.REPORTED", {"observing": lambda: "1 cluster is unwatched."})
    monkeypatch.setattr("config.status_page.NEEDED", {"database": lambda: ""})
    seen = page(visiting(make.a_user("ada", role="viewer")), reverse("status"))

    assert "Database ok" in seen.text
    assert "Observing 1 cluster is unwatched." in seen.text
