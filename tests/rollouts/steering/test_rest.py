"""A plan to the version that its object asks for already: it brings the nodes forward that do not run it."""

import pytest

from fleet.models import DriverObject, Node, OperandRevision, Pod
from rollouts.models import Hold, Plan, Target
from rollouts.queries import buttons
from rollouts.steering import commands
from rollouts.steering.preview import preview
from rollouts.steering.refusals import Blocked, Refusal
from rollouts.steering.starting import start
from tests.make import NOON
from tests.rollouts.make import NEW, NEW_HASH, OLD
from tests.rollouts.rows import CANARY, a_draft, a_started_plan

SAYS = f"The object already asks for {NEW}; 2 nodes of it do not run it: this plan brings them forward."


@pytest.fixture
def behind(cluster):
    """An earlier plan wrote the version and brought one node to it; two stayed held."""
    DriverObject.objects.filter(kind="NVIDIADriver").update(version=NEW)
    OperandRevision.objects.create(
        cluster=cluster, uid="uid-of-the-next", owner_uid=Pod.objects.first().owner_uid, revision=2,
        revision_hash=NEW_HASH, changed_at=NOON,
    )  # fmt: skip
    Node.objects.update(driver_version=OLD, upgrade_state="upgrade-required")
    has_it(Node.objects.get(name="node-0"))
    Node.objects.filter(name__in=["node-1", "node-2"]).update(is_held=True, held_by="plan-7")
    return cluster


def has_it(node: Node) -> None:
    Node.objects.filter(pk=node.pk).update(driver_version=NEW, upgrade_state="upgrade-done")
    Pod.objects.filter(node_name=node.name).update(revision_hash=NEW_HASH)


def test_it_takes_the_nodes_that_do_not_run_it_and_says_so(behind, owner):
    plan = a_draft(behind, owner)

    told = preview(plan, now=NOON)

    assert told.blockers == []
    assert [stage.targets for stage in told.stages] == [["node-1"], ["node-2"]]
    (check,) = [check for check in told.warnings if check.code == "rest"]
    assert check.sentence.startswith(SAYS)
    assert plan.title == f"Rest of h200 to {NEW}"


def test_only_those_are_held_and_every_guard_counts_from_the_start(behind, owner):
    plan = a_started_plan(behind, owner)

    assert plan.writes_nothing
    assert plan.write_intended_at == NOON
    assert set(Hold.objects.filter(plan=plan).values_list("node_name", flat=True)) == {"node-1", "node-2"}
    assert set(Target.objects.filter(stage__plan=plan).values_list("node_name", flat=True)) == {"node-1", "node-2"}
    assert plan.sealed["rollback"].startswith("No proven way back")


def test_an_object_without_a_node_behind_has_nothing_to_do(behind, owner):
    for node in Node.objects.all():
        has_it(node)

    told = preview(a_draft(behind, owner), now=NOON)

    assert "same-version" in [check.code for check in told.blockers]
    assert "rest" not in [check.code for check in told.warnings]


def test_what_the_operator_gave_up_on_is_named_and_left(behind, owner):
    """A dead board must not keep the others from ever being brought forward."""
    Node.objects.filter(name="node-1").update(upgrade_state="upgrade-failed", is_held=False, held_by="")
    plan = a_draft(behind, owner, stages=[CANARY])

    told = preview(plan, now=NOON)

    assert told.blockers == []
    assert [stage.targets for stage in told.stages] == [["node-2"]]
    assert "node-1 failed in an earlier change, and is not taken" in " ".join(one.sentence for one in told.warnings)


def test_a_node_at_work_is_waited_for(behind, owner):
    Node.objects.filter(name="node-1").update(upgrade_state="drain-required")
    plan = a_draft(behind, owner)

    with pytest.raises(Blocked, match="in the middle of another change"):
        start(plan, actor=owner, because="Go.", expected_revision=1, now=NOON)


@pytest.mark.parametrize("state", ["promoting", "halted"])
def test_nothing_leads_back_from_it(behind, owner, state):
    plan = a_started_plan(behind, owner)
    Plan.objects.filter(pk=plan.pk).update(state=state)
    plan.refresh_from_db()

    with pytest.raises(Refusal, match="nothing leads back"):
        commands.roll_back(plan, actor=owner, because="Back.", now=NOON)

    abort = next(button for button in buttons(plan, owner) if button.verb == "abort")
    assert abort.consequence.startswith("Gives the plan up: nothing was written")
