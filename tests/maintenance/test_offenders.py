"""Boards and nodes with several cases: by UUID and UID, never by name."""

from datetime import timedelta

import pytest

from health.inbox.queries import titles
from maintenance.models import NodeCase
from maintenance.offenders import offenders
from maintenance.repeat_offenders import why_replace
from operations.models import NodeTestJob
from tests.callers import calling
from tests.make import NOON, a_case, a_cluster, a_finding, a_node, a_user, an_operation
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db


def cases_of(node, *days: float, gpu_uuid: str = "", **given) -> list[NodeCase]:
    """Cases that ended, so many days before noon."""
    finding = {"node": node, "gpu_uuid": gpu_uuid, "rule": "gpu-silent"}
    return [
        a_case(
            node, state="closed", opened_at=NOON - timedelta(days=day),
            finding=a_finding(node.cluster, **finding) if gpu_uuid else None, **given,
        )
        for day in days
    ]  # fmt: skip


def test_a_board_is_followed_to_another_node_and_shown_with_its_serial():
    user, cluster = a_user(role="viewer"), a_cluster("north")
    first, second = a_node(cluster, "gpu-1"), a_node(cluster, "gpu-2")
    cases_of(first, 20, gpu_uuid="GPU-7", repaired_at=NOON - timedelta(days=9))
    cases_of(second, 4, gpu_uuid="GPU-7")
    cases_of(second, 3, gpu_uuid="GPU-8")  # one case
    NodeTestJob.objects.create(
        operation=an_operation(cluster, steps=("test_job",)), node_uid=second.uid, node_name="gpu-2", test="dcgm-3",
        namespace="x", image="x", resource="nvidia.com/gpu", amount=2, deadline_s=1, intended_at=NOON, gone_at=NOON,
        gpu_uuids=["GPU-8", "GPU-7"], diag={"serials": {"0": "1650", "1": "1657"}},
    )  # fmt: skip

    board, node = offenders(user, now=NOON).rows

    assert (board.board, board.serial, board.nodes) == ("GPU-7", "1657", ["gpu-2", "gpu-1"])
    assert (len(board.cases), board.repairs, board.again, board.faults) == (2, 1, 1, ["gpu-silent"])
    assert board.fault_titles == [titles()["gpu-silent"]] != board.faults
    assert (node.board, node.nodes) == ("", ["gpu-2"])  # its cases are of two boards


def test_old_cases_new_nodes_and_strangers_do_not_count():
    user, cluster = a_user(role="viewer"), a_cluster()
    cases_of(a_node(cluster, "gpu-1"), 31, 1)
    cases_of(a_node(cluster, "gpu-2"), 2, 1, is_new=True)
    cases_of(a_node(cluster, "gpu-3"), 2, 1)
    assert [each.nodes for each in offenders(user, now=NOON).rows] == [["gpu-3"]]
    assert offenders(a_user(role="viewer", on=a_cluster("south")), now=NOON).rows == []


def test_the_list_is_on_a_page_and_in_rest():
    ada, node = a_user(role="viewer"), a_node(a_cluster("north"), "gpu-3")
    cases = [a_case(node, state="closed", opened_at=NOON) for _ in range(2)]
    NodeCase.objects.update(opened_at=NOON.now(NOON.tzinfo))
    assert "gpu-3" in page(visiting(ada), "/maintenance/repeat-offenders").text
    (row,) = calling(ada).get("/api/v1/repeat-offenders").json()
    assert (row["nodes"], sorted(row["cases"])) == (["gpu-3"], sorted(case.pk for case in cases))


def test_a_cut_list_says_so_and_a_full_one_does_not(monkeypatch: pytest.MonkeyPatch):
    user, cluster = a_user(role="viewer"), a_cluster()
    for number in range(2):
        cases_of(a_node(cluster, f"gpu-{number}"), 2, 1)
    monkeypatch.setattr("maintenance.offenders.MOST", 2)
    monkeypatch.setattr("maintenance.offenders.MOST_CASES", 4)
    full = offenders(user, now=NOON)
    assert (len(full.rows), full.is_more, full.is_cut) == (2, False, False)

    monkeypatch.setattr("maintenance.offenders.MOST", 1)
    assert offenders(user, now=NOON).is_more
    monkeypatch.setattr("maintenance.offenders.MOST_CASES", 3)
    assert offenders(user, now=NOON).is_cut


def test_the_list_counts_again_as_a_case_does():
    """A case of its page and the list had two definitions."""
    user, node = a_user(role="viewer"), a_node(a_cluster(), "gpu-1")
    week = timedelta(days=7)
    (later,) = cases_of(node, 1)
    (first,) = cases_of(node, 20, repaired_at=NOON - timedelta(days=1) - week)
    assert (offenders(user, now=NOON).rows[0].again, why_replace(later)) == (0, "")
    NodeCase.objects.filter(pk=first.pk).update(repaired_at=NOON - timedelta(days=1))
    assert offenders(user, now=NOON).rows[0].again == 1
    assert why_replace(later).startswith("1 repair in the 7 days")
