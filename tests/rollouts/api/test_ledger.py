"""The ledger over REST: who is out, and how many of each kind of failure domain may be."""

import pytest

from operations.models import Disruption, DomainBudget
from tests.callers import calling
from tests.make import NOON, a_cluster, a_fleet, a_plan, a_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def plan():
    return a_plan(a_fleet("north"))


@pytest.fixture
def root():
    return calling(a_user("root", role="admin"))


def ask(caller, plan, **asked):
    return caller.post(f"/api/v1/clusters/{plan.cluster_id}/domain-budgets", asked, format="json")


def out(plan, name: str, **given) -> None:
    row = {"taken_at": NOON, "domains": [["zone", "a"]]}
    Disruption.objects.create(
        cluster=plan.cluster, taken_by=plan.mark, node_uid=f"uid-{name}", node_name=name, **row | given
    )


def test_budgets_are_set_and_shown_for_each_kind(plan, root):
    answer = ask(root, plan, kind="nvlink-domain", max_unavailable=1, reason="One NVL72 at a time.")

    shown = {one["kind"]: one for one in answer.json()}
    assert answer.status_code == 200
    assert list(shown) == ["zone", "rack", "nvlink-domain"]
    assert shown["nvlink-domain"]["sentence"] == "Each NVLink domain may have 1 node unavailable at a time."
    assert (shown["zone"]["max_unavailable"], shown["zone"]["by"]) == (None, "")
    racks = ask(root, plan, kind="rack", max_unavailable=2, rack_label="dc.example.com/rack", reason="x").json()[1]
    assert (racks["max_unavailable"], racks["rack_label"]) == (2, "dc.example.com/rack")
    assert root.get(f"/api/v1/clusters/{plan.cluster_id}/domain-budgets").json()[1] == racks


@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "pool", "max_unavailable": 1},
        {"kind": "zone", "max_unavailable": 0},
        {"kind": "zone"},
        {"kind": "rack", "max_unavailable": 1},
        {"kind": "rack", "max_unavailable": 1, "rack_label": "a b"},
    ],
)
def test_what_makes_no_budget_is_refused(plan, root, asked):
    assert ask(root, plan, **asked, reason="x").status_code in (400, 409, 422)
    assert not DomainBudget.objects.exists()


def test_only_admins_of_the_cluster_set_them(plan):
    asked = {"kind": "zone", "max_unavailable": 1, "reason": "x"}

    assert ask(calling(a_user("ada", role="operator")), plan, **asked).status_code == 403
    assert ask(calling(a_user("eve", role="admin", on=a_cluster("south"))), plan, **asked).status_code == 404
    assert not DomainBudget.objects.exists()


def test_who_is_out_is_listed_by_cluster_and_by_whether_it_is_out_still(plan, root):
    out(plan, "n1")
    out(plan, "n2", ended_at=NOON)
    out(a_plan(a_fleet("south")), "m1")

    Disruption.objects.create(
        cluster=plan.cluster, taken_by="quarantine", node_uid="uid-q", node_name="n3", taken_at=NOON, ended_at=NOON
    )

    def named(**query) -> list[str]:
        return [one["node_name"] for one in root.get("/api/v1/disruptions", query).json()["results"]]

    assert sorted(named(cluster="north")) == ["n1", "n2", "n3"]
    assert named(cluster="north", is_in_force=True) == ["n1"]
    assert named(cluster="north", is_in_force=False) == ["n2", "n3"]
    shown = {one["node_name"]: one for one in root.get("/api/v1/disruptions").json()["results"]}
    assert (shown["n1"]["plan"], shown["n1"]["taken_by"]) == (plan.pk, plan.mark)
    assert (shown["n3"]["plan"], shown["n3"]["taken_by"]) == (None, "quarantine")
    eve = calling(a_user("eve", role="viewer", on=a_cluster("east")))
    assert eve.get("/api/v1/disruptions").json()["results"] == []
