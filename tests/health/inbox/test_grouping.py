"""Findings that say the same of many nodes and began together are one row, which opens; each is still its own."""

import re
from datetime import timedelta

import pytest

from health.inbox import finding_groups
from health.inbox.finding_groups import groups_of
from health.inbox.queries import CODED, code_of, titles
from health.lifecycle import FindingState
from health.models import Finding
from tests import make
from tests.make import NOON
from tests.pages import page, visiting

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]
MINUTE = timedelta(minutes=1)


@pytest.fixture
def cluster():
    return make.a_cluster("prod")


@pytest.fixture
def ada():
    return visiting(make.a_user("ada", role="operator"))


def some(cluster, number: int, *, gap: timedelta = MINUTE, **given) -> list[Finding]:
    """On as many nodes, the oldest first."""
    row = {"rule": "exporter-silent"} | given
    return [
        make.a_finding(cluster, node=make.a_node(cluster), since=NOON - timedelta(hours=1) + at * gap, **row)
        for at in range(number)
    ]


def grouped() -> list[tuple[int, int]]:
    """Of each row of the list how many findings it stands for, and of how many nodes it says so."""
    return [(len(group.keys), group.nodes) for group in groups_of(Finding.objects.order_by("-since", "-pk"))]


def test_four_nodes_are_one_row_and_three_are_three(cluster):
    three = some(cluster, 3)
    assert grouped() == [(1, 0)] * 3

    fourth = some(cluster, 1)

    assert grouped() == [(4, 4)]
    (group,) = groups_of(Finding.objects.order_by("-since", "-pk"))
    oldest, second, newest = (row.pk for row in three)
    assert group.keys == (newest, second, fourth[0].pk, oldest)


def test_gpus_of_one_node_are_no_many_nodes(cluster):
    node = make.a_node(cluster)
    for index in range(8):
        make.a_finding(cluster, f"GPU {index} of {node.name}", node=node, rule="gpu-hot")

    assert grouped() == [(1, 0)] * 8


@pytest.mark.parametrize(
    "other",
    [
        {"rule": "node-not-ready"},
        {"severity": "critical"},
        {"state": FindingState.ACKNOWLEDGED},
        {"assigned_to": "ada"},
        {"rule": "gpu-xid", "facts": {"xid": 79}},
        {"rule": "operand-down", "facts": {"operands": ["dcgm-exporter"]}},
    ],
)
def test_what_says_something_else_stands_beside_it(cluster, other):
    alike = {"rule": other["rule"], "facts": {"xid": 48, "operands": ["driver"]}} if "facts" in other else {}
    some(cluster, 4, **alike)

    some(cluster, 1, **other)

    assert sorted(grouped()) == [(1, 0), (4, 4)]


def test_what_began_at_another_time_or_elsewhere_is_another(cluster):
    some(cluster, 4, gap=11 * MINUTE)
    assert grouped() == [(1, 0)] * 4
    Finding.objects.all().delete()

    some(cluster, 4, gap=10 * MINUTE)
    some(make.a_cluster("other"), 3)

    assert sorted(grouped()) == [(1, 0), (1, 0), (1, 0), (4, 4)]


def test_only_facts_that_tell_findings_apart_is_read(cluster):
    some(cluster, 1, facts={"log": "x" * 1000})
    some(cluster, 1, rule="gpu-xid", facts={"xid": 79})

    read = finding_groups._comparable_findings(Finding.objects.order_by("rule"))

    assert [(row.rule, row.facts) for row in read] == [("exporter-silent", {}), ("gpu-xid", {"xid": 79})]


@pytest.mark.parametrize("rule", titles())
def test_whose_evidence_tells_apart_is_one_table(rule):
    evidence = {"xid": 79, "operands": ["nvidia-driver"], "MemoryPressure": "yes"}

    code, _ = code_of(Finding(rule=rule, facts=evidence))

    assert bool(code) == (rule in CODED)


def test_the_inbox_has_one_row_which_opens(cluster, ada):
    rows = some(cluster, 60)
    alone = make.a_finding(cluster, rule="operator-down", title="The operator does not run.", severity="critical")

    shown = page(ada, "/findings")

    assert "Exporter silent on 60 nodes" in shown.text
    assert "60 findings that began together" in shown.text
    assert "61 unresolved" in shown.text
    assert any(f"finding={alone.pk}" in link for link in shown.links)
    assert not any("page=" in link for link in shown.links)
    (opens,) = {link for link in shown.links if "together=" in link}

    opened = page(ada, f"/findings{opens}" if opens.startswith("?") else opens)

    assert "60 findings that began together. Show all" in opened.text
    linked = {int(key) for link in opened.links for key in re.findall(r"finding=(\d+)", link)}
    assert len(linked & {row.pk for row in rows}) == 50  # a page of them


def test_an_opened_group_stays_whole_whatever_becomes_of_each(cluster, ada):
    rows = some(cluster, 5)
    some(cluster, 1, rule="node-not-ready")
    some(cluster, 1, gap=MINUTE * 0).pop().move(FindingState.RESOLVED, now=NOON)
    for row, changed in zip(
        rows[1:], ({"state": "acknowledged"}, {"assigned_to": "ada"}, {"severity": "critical"}), strict=False
    ):
        Finding.objects.filter(pk=row.pk).update(**changed)

    for opened in (rows[0], rows[-1]):
        assert "5 findings that began together" in page(ada, f"/findings?together={opened.pk}").text
        assert "1 finding that began together" in page(ada, f"/findings?tab=resolved&together={opened.pk}").text
    assert "4 findings that began together" in page(ada, f"/findings?tab=unacknowledged&together={rows[1].pk}").text


def test_the_tabs_lead_out_of_an_opened_group(cluster, ada):
    rows = some(cluster, 4)

    tabs = [link for link in page(ada, f"/findings?together={rows[0].pk}").links if "tab=" in link]

    assert tabs
    assert not [link for link in tabs if re.search(r"together=\d", link)]


def test_what_went_on_beginning_for_hours_began_not_together(cluster):
    some(cluster, 16, gap=9 * MINUTE)

    assert sorted(grouped()) == [(1, 0), (1, 0), (7, 7), (7, 7)]


def test_a_group_says_that_it_is_not_seen(ada):
    unseen = make.a_cluster("far", seen_at=NOON - timedelta(hours=1))
    some(unseen, 4)

    shown = page(ada, "/findings")

    assert "Exporter silent on 4 nodes" in shown.text
    assert "as of 11:00" in shown.text


def test_it_costs_no_more_for_more(cluster, ada, queries_of):
    some(cluster, 10)
    addresses = ("/findings", "/api/v1/finding-groups")
    few = [queries_of(ada, address) for address in addresses]

    some(cluster, 12)
    some(cluster, 12, severity="critical")

    assert [queries_of(ada, address) for address in addresses] == few


def test_a_group_that_is_over_says_so(cluster, ada):
    (row,) = some(cluster, 1)
    row.move(FindingState.RESOLVED, now=NOON)

    assert "These findings are resolved or on another tab" in page(ada, f"/findings?together={row.pk}").text


def test_rest_says_the_same_and_of_what_one_sees(cluster, ada):
    rows = some(cluster, 5)
    pool = make.a_pool(cluster)
    pool.nodes.add(*(row.node for row in rows[:4]))
    of_pool = visiting(make.a_user("pat", role="viewer", on=pool))

    (group,), (theirs,) = (who.get("/api/v1/finding-groups").json() for who in (ada, of_pool))

    assert (group["rule"], group["title"], group["nodes"]) == ("exporter-silent", "Exporter silent", 5)
    assert group["findings"] == [row.pk for row in reversed(rows)]
    assert theirs["findings"] == [row.pk for row in reversed(rows[:4])]


def sizes(text: str) -> list[int]:
    """Of each group on a page, how many findings it stands for."""
    return sorted(int(number) for number in re.findall(r"(\d+) findings that began together", text))


@pytest.mark.parametrize(("alone", "ones", "more"), [(1, 1, 0), (4, 3, 1)])
def test_the_home_page_has_the_groups_of_the_inbox_and_both_sum_to_the_same(cluster, ada, alone, ones, more):
    for number in range(alone):
        make.a_finding(cluster, rule=f"r{number}", title="It is wrong alone.")
    some(cluster, 6)
    some(cluster, 5, rule="gpu-hot", opened_at=None)
    some(cluster, 4, rule="operand-down", state=FindingState.MUTED)

    strip, inbox = page(ada, "/parts/findings/strip").text, page(ada, "/findings").text
    groups = ada.get("/api/v1/finding-groups").json()

    assert sizes(inbox) == sorted(len(one["findings"]) for one in groups) == [4, 5, 6]
    assert sizes(strip) == [5, 6]  # nobody is told of what is muted
    assert strip.count("It is wrong alone.") == ones
    assert ("more" in strip) == bool(more)
    assert f"and {more} more" in strip or not more
    assert sum(sizes(strip)) + ones + more == 6 + alone + 5
    assert f"all: {6 + alone} open, 5 being confirmed" in strip
    assert f"{6 + alone} open, 0 acknowledged, 5 being confirmed, 4 muted" in inbox


@pytest.mark.parametrize("given", [{}, {"opened_at": None}], ids=["open", "being confirmed"])
def test_a_group_of_the_home_page_leads_to_its_findings_by_the_newest(cluster, ada, given):
    newest = some(cluster, 4, **given)[-1]

    strip = page(ada, "/parts/findings/strip")

    assert "on 4 nodes" in strip.text
    assert "the newest 57 min ago" in strip.text
    assert f"/findings?together={newest.pk}" in strip.links
