"""Budgets of zones, racks and NVLink domains: said with a reason, kept for good, told to the plans they bind."""

import pytest

from operations.failure_domains import DomainKind
from operations.models import DomainBudget
from people.models import AuditEntry
from rollouts.commands.domain_budgets import BadBudget, set_budget
from tests.make import NOON, a_fleet, a_plan

pytestmark = pytest.mark.django_db
ASKED = {"actor": "root", "reason": "One power feed each.", "now": NOON}


def test_a_budget_is_set_changed_and_taken_away_and_each_is_kept():
    north = a_fleet("north")

    said = [set_budget(north, DomainKind.ZONE, most, **ASKED) for most in (2, 1, None)]

    assert said == [
        "Each zone may have 2 nodes unavailable at a time.",
        "Each zone may have 1 node unavailable at a time.",
        "Each zone may have any number of nodes unavailable.",
    ]
    assert not DomainBudget.objects.exists()
    entries = AuditEntry.objects.filter(subject=f"domain-budget:{north.pk}:zone").order_by("pk")
    assert [entry.evidence["after"]["max_unavailable"] for entry in entries] == [2, 1, None]
    assert entries[1].evidence["before"]["max_unavailable"] == 2


def test_plans_that_it_binds_are_told_and_look_again():
    plan = a_plan(a_fleet("north"))

    set_budget(plan.cluster, DomainKind.RACK, 1, label="dc.example.com/rack", **ASKED)

    event = plan.events.first()
    assert event.reason == (
        "Each rack (label dc.example.com/rack) may have 1 node unavailable at a time. One power feed each."
    )
    plan.refresh_from_db()
    assert plan.next_look_at == NOON


@pytest.mark.parametrize(
    ("kind", "most", "label", "says"),
    [
        (DomainKind.ZONE, 0, "", "a number from 1 to 100,000"),
        (DomainKind.ZONE, 100_001, "", "a number from 1 to 100,000"),
        (DomainKind.ZONE, 1, "a/b", "Only racks"),
        (DomainKind.RACK, 1, "", "Name the node label with the rack's name. Kubernetes has no such label of its own"),
        (DomainKind.RACK, 1, "a b", "That is not a label key. Write it as topology.example.com/rack"),
        (DomainKind.RACK, 1, "a/b/c", "That is not a label key. Write it as topology.example.com/rack"),
        (DomainKind.RACK, 1, "x" * 64, "That is not a label key. Write it as topology.example.com/rack"),
        (DomainKind.RACK, 1, "x" * 400, "That is not a label key. Write it as topology.example.com/rack"),
    ],
)
def test_what_makes_no_budget_is_refused_in_a_sentence(kind, most, label, says):
    north = a_fleet("north")

    with pytest.raises(BadBudget, match=says):
        set_budget(north, kind, most, label=label, **ASKED)

    assert not DomainBudget.objects.exists()
