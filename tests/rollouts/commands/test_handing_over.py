"""Hazard Z38: what a person decides of the nodes of a plan that is given up, and when there is nothing to decide."""

from datetime import timedelta

import pytest

from fleet.models import DriverObject
from people.models import AuditEntry
from rollouts.commands.handover import hand_over
from rollouts.commands.refusals import OutOfDate, Refusal
from rollouts.models import Plan
from rollouts.queries.handover import handover_of
from tests.make import NOON
from tests.rollouts.make import NEW, OLD
from tests.rollouts.rows import a_started_plan, in_state

LATER = NOON + timedelta(minutes=5)
OTHER = "590.44.1"


@pytest.fixture
def plan(cluster, owner) -> Plan:
    """Given up while it was holding."""
    return in_state(a_started_plan(cluster, owner), "aborting", is_written=False)


def asks_for(version: str) -> None:
    DriverObject.objects.filter(kind="NVIDIADriver").update(version=version)


def hand(plan: Plan, owner, **given) -> Plan:
    hand_over(plan, actor=owner, reason="The fleet needs it.", now=LATER, **given)
    return Plan.objects.get(pk=plan.pk)


def test_it_names_the_version_that_the_nodes_go_to(plan, owner):
    asks_for(OTHER)

    handed = hand(plan, owner, version=OTHER)

    entry = AuditEntry.objects.get(subject=plan.mark, verb="handover")
    assert handed.handed_to == OTHER
    assert (entry.reason, entry.evidence["handed_to"]) == ("The fleet needs it.", OTHER)


def test_a_version_that_is_another_by_now_is_not_decided_of(plan, owner):
    asks_for("595.0.1")

    with pytest.raises(OutOfDate, match=f"The object no longer requests {OTHER}. The object requests 595.0.1."):
        hand(plan, owner, version=OTHER)

    assert Plan.objects.get(pk=plan.pk).handed_to == ""


@pytest.mark.parametrize(
    ("version", "is_written", "says"),
    [
        (OLD, False, "Nobody else has changed"),
        (NEW, True, "Nobody else has changed"),
        ("", False, "names no version. Write one into it first."),
    ],
)
def test_with_nothing_of_others_to_go_to_it_is_refused(plan, owner, version: str, is_written: bool, says: str):
    plan = in_state(plan, "aborting", is_written=is_written)
    asks_for(version)

    with pytest.raises(Refusal, match=says):
        hand(plan, owner)


def test_the_version_of_the_plan_is_of_others_where_the_plan_has_not_written_it(plan, owner):
    asks_for(NEW)

    assert hand(plan, owner).handed_to == NEW


def test_a_template_of_others_is_taken_with_it(plan, owner):
    asks_for(OLD)
    change = {"says": "spec.env of NVIDIADriver default was changed by somebody else", "spec": {"env": "x"}}
    Plan.objects.filter(pk=plan.pk).update(template_change=change | {"old": {}, "new": {}, "owners": []})
    plan.refresh_from_db()
    assert "spec.env of NVIDIADriver default was changed" in handover_of(plan).says

    handed = hand(plan, owner, seen=handover_of(plan).seen)

    assert (handed.handed_to, handed.template_change, handed.templates["spec"]) == (OLD, {}, {"env": "x"})


CHANGE = {"says": "spec.env was changed by somebody else", "spec": {"env": "x"}, "old": {}, "new": {}, "owners": []}


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        ({}, "The object has changed since you read the plan."),
        (CHANGE | {"spec": {"env": "y"}}, "The object has changed since you read the plan."),
        (None, "Send `seen` as well."),
    ],
)
def test_a_template_that_nobody_was_shown_is_not_decided_of(plan, owner, shown: dict | None, says: str):
    """The same version, and the same fields: another value of one is another template."""
    asks_for(OTHER)
    plan.template_change = shown or {}
    seen = None if shown is None else handover_of(plan).seen
    Plan.objects.filter(pk=plan.pk).update(template_change=CHANGE)

    with pytest.raises(OutOfDate, match=f"{says} The object requests {OTHER}. spec.env was changed by somebody else."):
        hand(plan, owner, version=OTHER, seen=seen)

    assert Plan.objects.get(pk=plan.pk).handed_to == ""


def test_what_is_decided_already_is_not_decided_again(plan, owner):
    asks_for(OTHER)
    hand(plan, owner)

    with pytest.raises(Refusal, match=f"Its nodes are already handed over to {OTHER}."):
        hand(plan, owner)


def test_only_a_plan_that_is_given_up_hands_its_nodes_over(plan, owner):
    asks_for(OTHER)

    with pytest.raises(Refusal, match="The plan is halted, so you cannot hand over it"):
        hand(in_state(plan, "halted"), owner)
