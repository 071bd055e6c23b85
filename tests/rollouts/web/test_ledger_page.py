"""The ledger of a cluster: budgets, who is out, and changing a budget with a reason."""

from datetime import timedelta

import pytest

from fleet.models import Bookmark
from operations.models import Disruption, DomainBudget
from tests import make
from tests.make import NOON
from tests.pages import Page, page, visiting, wrong_beside

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("now")]


@pytest.fixture
def plan():
    return make.a_plan(make.a_fleet("north"))


@pytest.fixture
def root():
    return visiting(make.a_user("root", role="admin"))


def send(client, plan, **asked) -> str:
    response = client.post(f"/clusters/{plan.cluster_id}/domain-budgets", asked, follow=True)
    return Page(response.content.decode()).text


def test_it_names_budgets_and_who_is_out_and_who_was(plan, root):
    for number, ended_at in enumerate((None, NOON)):
        Disruption.objects.create(
            cluster=plan.cluster,
            taken_by=plan.mark,
            node_uid=f"uid-{number}",
            node_name=f"gpu-out-{number}",
            taken_at=NOON,
            ended_at=ended_at,
        )

    Disruption.objects.create(
        cluster=plan.cluster, taken_by="quarantine", node_uid="uid-q", node_name="gpu-sick", taken_at=NOON
    )

    text = page(root, f"/clusters/{plan.cluster_id}/ledger").text

    assert "gpu-sick quarantine" in text
    assert "Each zone may have any number of nodes unavailable." in text
    assert "Pool h200 may have 1 node unavailable at a time." in text
    out, back = text.split("Unavailable now")[1].split("the last 1")
    assert "gpu-out-0" in out
    assert "gpu-out-1" in back


def test_of_a_cluster_that_is_not_seen_it_says_that_who_is_back_keeps_a_place(plan, root):
    path = f"/clusters/{plan.cluster_id}/ledger"
    keeps = "A recovered node counts as unavailable until it is observed."
    assert keeps not in page(root, path).text

    Bookmark.objects.update(last_seen_at=NOON - timedelta(minutes=10))

    assert keeps in page(root, path).text


def test_an_admin_of_the_cluster_sets_a_budget_with_a_reason(plan, root):
    asked = {"kind": "rack", "max_unavailable": "1", "label": "dc.example.com/rack"}

    assert "Give a reason" in send(root, plan, **asked)
    said = send(root, plan, **asked, reason="One power feed each.")

    assert "Each rack (label dc.example.com/rack) may have 1 node unavailable at a time." in said
    assert "One power feed each. (root" in said
    assert DomainBudget.objects.get().by == "root"
    assert "any number of nodes" in send(root, plan, kind="rack", reason="No more.")
    assert not DomainBudget.objects.exists()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"kind": "zone", "max_unavailable": "many"}, "“many” is not a number"),
        ({"kind": "zone", "max_unavailable": "0"}, "a number from 1 to 100,000"),
        ({"kind": "pool", "max_unavailable": "1"}, "A pool has its own"),
        (
            {"kind": "rack", "max_unavailable": "1", "label": "x" * 400},
            "That is not a label key. Write it as topology.example.com/rack",
        ),
    ],
)
def test_what_makes_no_budget_is_said(plan, root, asked, says):
    assert says in send(root, plan, **asked, reason="x")
    assert not DomainBudget.objects.exists()


def test_what_was_written_for_a_budget_that_is_refused_comes_back_once(plan, root):
    path = f"/clusters/{plan.cluster_id}/ledger"
    asked = {"kind": "rack", "max_unavailable": "two", "label": "dc.example.com/rack", "reason": "One <feed> each."}
    refused = root.post(f"/clusters/{plan.cluster_id}/domain-budgets", asked, follow=True).content.decode()
    later = root.get(path).content.decode()

    assert '<option value="rack" selected>' in refused
    assert 'value="two"' in refused
    assert 'value="dc.example.com/rack"' in refused
    assert "One &lt;feed&gt; each." in refused
    assert "selected" not in later
    assert "feed" not in later


def test_what_is_wrong_with_a_budget_stands_beside_each_field(plan, root):
    asked = {"kind": "luck", "max_unavailable": "two", "reason": " "}
    refused = root.post(f"/clusters/{plan.cluster_id}/domain-budgets", asked, follow=True).content.decode()
    nonsense = asked | {"kind": "rack", "max_unavailable": "2", "reason": "x", "label": "a b"}
    unknown = root.post(f"/clusters/{plan.cluster_id}/domain-budgets", nonsense, follow=True).content.decode()

    assert wrong_beside(refused, "budget-kind").startswith("A budget applies to zone, rack")
    assert wrong_beside(refused, "budget-most") == "“two” is not a number. Leave the field empty for no limit."
    assert wrong_beside(refused, "reason-budget").startswith("Give a reason")
    assert wrong_beside(refused, "budget-label") == ""
    assert wrong_beside(unknown, "budget-label").startswith(
        "That is not a label key. Write it as topology.example.com/rack"
    )


def test_a_budget_that_was_refused_is_of_its_own_cluster(plan, root):
    other = make.a_cluster("south")
    asked = {"kind": "zone", "max_unavailable": "two", "reason": "Its feeds."}
    root.post(f"/clusters/{plan.cluster_id}/domain-budgets", asked)

    assert "Its feeds." not in root.get(f"/clusters/{other.pk}/ledger").content.decode()
    assert "Its feeds." in root.get(f"/clusters/{plan.cluster_id}/ledger").content.decode()


def test_an_operator_sees_it_and_is_told_what_it_takes_to_change_it(plan):
    ada = visiting(make.a_user("ada", role="operator"))

    assert "Change" in page(ada, f"/clusters/{plan.cluster_id}/ledger").text
    assert "you need the role" in send(ada, plan, kind="zone", max_unavailable="1", reason="x")
    assert not DomainBudget.objects.exists()


def test_a_stranger_finds_nothing(plan):
    eve = visiting(make.a_user("eve", role="admin", on=make.a_cluster("south")))

    assert eve.get(f"/clusters/{plan.cluster_id}/ledger").status_code == 404
    asked = {"kind": "zone", "max_unavailable": "1", "reason": "x"}
    assert eve.post(f"/clusters/{plan.cluster_id}/domain-budgets", asked).status_code == 404
