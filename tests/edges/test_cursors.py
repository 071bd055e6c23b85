"""Cursors: whatever a list is ordered by, its pages have each row once, in order, also with nulls and new rows."""

from datetime import timedelta

import pytest

from edges.cursors import BadCursor, cursor_after, keys_of, rows_after
from health.models import Finding
from rollouts.models import MaintenanceWindow
from tests import make
from tests.make import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite]


def pages(rows, *, of: str = "x", size: int = 2):
    keys, cursor, found = keys_of(rows), "", []
    while page := list(rows_after(rows, keys, cursor, of=of)[:size]):
        found.append([row.pk for row in page])
        cursor = cursor_after(page[-1], keys, of=of)
    return found


@pytest.mark.parametrize(
    "ordering",
    [("resolved_at",), ("-resolved_at",), ("severity", "-opened_at"), ("-cluster__name", "resolved_at", "-pk"), ()],
)
def test_every_row_is_on_one_page_in_order(ordering):
    for number in range(7):
        finding = make.a_finding(make.a_cluster(), severity=("critical", "warning")[number % 2])
        at = None if number % 3 == 0 else NOON + timedelta(minutes=number // 2)
        Finding.objects.filter(pk=finding.pk).update(resolved_at=at)
    rows = Finding.objects.order_by(*ordering) if ordering else Finding.objects.all()
    keys = keys_of(rows)

    found = pages(rows)

    assert [len(page) for page in found] == [2, 2, 2, 1]
    assert [pk for page in found for pk in page] == [row.pk for row in rows_after(rows, keys, "", of="x")]


def test_a_relation_is_ordered_by_its_model_s_ordering():
    windows = [make.a_window(make.a_cluster(name)) for name in ("b", "a", "c")]

    found = pages(MaintenanceWindow.objects.all(), size=1)

    assert [page[0] for page in found] == [windows[number].pk for number in (1, 0, 2)]


def test_new_and_removed_rows_move_no_page():
    cluster = make.a_cluster()
    first, second, third, fourth = (make.a_node(cluster, name) for name in "bdfh")
    rows = cluster.nodes.order_by("name")
    keys = keys_of(rows)
    cursor = cursor_after(second, keys, of="x")
    make.a_node(cluster, "a")
    first.delete()
    second.delete()

    assert list(rows_after(rows, keys, cursor, of="x")) == [third, fourth]


@pytest.mark.parametrize("change", ["list", "order", "content"])
def test_a_cursor_of_another_list_or_order_is_refused(change):
    cluster = make.a_cluster()
    node, rows = make.a_node(cluster), cluster.nodes.order_by("name")
    cursor = cursor_after(node, keys_of(rows), of="x")
    other = rows.order_by("-name") if change == "order" else rows
    wrong = f"x{cursor}" if change == "content" else cursor

    with pytest.raises(BadCursor):
        rows_after(other, keys_of(other), wrong, of="y" if change == "list" else "x")
