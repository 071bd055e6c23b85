"""Boards and nodes that fail again after a repair (lifecycle R37)."""

from datetime import timedelta

import pytest

from maintenance.repair_offers import repair_offers
from maintenance.repeat_offenders import results_of_repairs, why_replace
from maintenance.triggers import VERSION
from tests.make import NOON, a_case, a_cluster, a_finding, a_node, a_pool, a_repair, a_user
from tests.pages import page, visiting

pytestmark = pytest.mark.django_db


def of_board(node, uuid: str, *, repaired_days: int | None = None):
    finding = a_finding(node.cluster, node=node, severity="critical", gpu_uuid=uuid)
    given = {"state": "closed", "repaired_at": NOON - timedelta(days=repaired_days)} if repaired_days else {}
    return a_case(node, finding=finding, **given)


def test_a_board_is_recognised_in_another_node():
    cluster = a_cluster()
    earlier = of_board(a_node(cluster, "gpu-1"), "GPU-a", repaired_days=3)
    case = of_board(a_node(cluster, "gpu-2"), "GPU-a")

    said = f"1 repair in the 7 days before this case (case {earlier.pk} on gpu-1). It may need other hardware."
    assert said in page(visiting(a_user("ada", role="viewer")), f"/cases/{case.pk}").text


def test_cases_of_pools_that_the_viewer_may_not_see_are_counted_and_not_named():
    cluster = a_cluster()
    pool = a_pool(cluster, "mine")
    of_board(a_node(cluster, "gpu-1"), "GPU-a", repaired_days=3)
    case = of_board(a_node(cluster, "gpu-2", pool=pool), "GPU-a")

    said = "1 repair in the 7 days before this case. It may need other hardware."
    assert said in page(visiting(a_user("ada", role="viewer", on=pool)), f"/cases/{case.pk}").text
    assert why_replace(case) == said, "the reason of an automatic step is shown to everybody who sees the case"


def test_earlier_cases_of_the_same_node_are_named_to_everybody():
    node = a_node(a_cluster(), "gpu-1")
    earlier = of_board(node, "GPU-a", repaired_days=3)

    assert f"(case {earlier.pk} on gpu-1)" in why_replace(a_case(node, finding=earlier.finding))


@pytest.mark.parametrize(
    ("days", "uuid", "said"),
    [
        ((8, 9), "GPU-a", ""),
        ((8, 9, 20), "GPU-a", "3 repairs in the 30 days before this case"),
        ((8, 9, 31), "GPU-a", ""),
        ((3,), "GPU-b", ""),
    ],
)
def test_old_repairs_count_only_if_there_are_many(days: tuple[int, ...], uuid: str, said: str):
    cluster = a_cluster()
    for number, each in enumerate(days):
        of_board(a_node(cluster, f"gpu-{number}"), uuid, repaired_days=each)
    case = of_board(a_node(cluster, "gpu-x"), "GPU-a")

    assert why_replace(case).startswith(said)
    assert bool(why_replace(case)) is bool(said)


def test_a_board_of_another_cluster_is_not_named():
    of_board(a_node(a_cluster("elsewhere"), "gpu-1"), "GPU-a", repaired_days=3)

    assert why_replace(of_board(a_node(a_cluster("here"), "gpu-2"), "GPU-a")) == ""


def test_the_page_and_rest_say_how_often_a_repair_mended_the_same_fault():
    """lifecycle R74, R76. The finding names it beside its recommendation, with the version and source of the rule."""
    cluster = a_cluster()

    def repaired(number: int, state: str, *kinds: str, xid: int = 79, **given):
        node = a_node(cluster, f"gpu-{number}")
        case = a_case(
            node, finding=a_finding(cluster, node=node, rule="gpu-xid", facts={"xid": xid}), state=state, **given
        )
        for kind in kinds:
            a_repair(case, kind=kind, answer="done")
        return case

    repaired(1, "closed", "reboot")
    repaired(2, "probation", "reboot", "hardware")  # the reboot did not mend it
    repaired(3, "retired", "reboot", failed_at=NOON)
    repaired(4, "retired", "reboot")  # its node left before a test
    repaired(5, "closed", "reboot", xid=48)
    case = repaired(6, "probation", "reboot")  # not counted for itself
    ada = visiting(a_user("ada", role="viewer"))

    assert results_of_repairs(case) == {"hardware": "1 of 1", "reboot": "1 of 3"}
    assert "Same fault before hardware mended 1 of 1, reboot mended 1 of 3" in page(ada, f"/cases/{case.pk}").text
    part = ada.get(f"/parts/findings/{case.finding_id}/case").content.decode()
    assert f"GPU off the bus, version {VERSION} of the rules. Source: NVIDIA&#x27;s Xid catalogue." in part
    assert "Same fault before: hardware mended 1 of 1, reboot mended 1 of 3." in part
    actors = ada.get(f"/api/v1/cases/{case.pk}/repair-actors").json()
    assert {actor["key"]: actor["mended"] for actor in actors}["nvsentinel-reboot"] == {"reboot": "1 of 3"}


@pytest.mark.parametrize(
    ("rule", "xid", "suggested"),
    [("gpu-xid", 79, "reboot"), ("gpu-xid", 13, "other"), ("gpu-hot", None, "other"), ("", None, "other")],
)
def test_a_reboot_is_suggested_only_for_a_fault_that_it_mends(rule: str, xid: int | None, suggested: str):
    node = a_node(a_cluster(mode="operate"), "gpu-1")
    finding = a_finding(node.cluster, node=node, rule=rule, facts={"xid": xid}) if rule else None
    case = a_case(node, state="drained", finding=finding)

    assert repair_offers(case, boot_id="first")[0].kind == suggested
