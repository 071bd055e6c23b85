"""The request for a pull, and its end without a purpose: what is written, and who loses."""

import pytest
from django.db import transaction

from fleet.models import Cluster, Operand
from operations import commands
from operations.lifecycle import OperationState
from operations.models import Freeze, Operation
from people.models import AuditEntry
from rollouts.commands import image_pulls
from rollouts.commands.image_pulls import MOST_EACH, ask, cancel_obsolete_pulls
from rollouts.commands.refusals import BadPlan, Refusal
from rollouts.models import Plan, PlanPull
from rollouts.queries.image_pulls import pulls_on_page
from tests.make import NOON, a_node, a_pod, a_user, an_operand
from tests.rollouts.make import NEW
from tests.rollouts.rows import SELECTOR, a_draft, a_started_plan, in_state

pytestmark = pytest.mark.django_db

UBUNTU, RHEL = "nvcr.io/nvidia/driver:{}-ubuntu22.04", "nvcr.io/nvidia/driver:{}-rhel9"


@pytest.fixture
def told(cluster: Cluster) -> Cluster:
    """Its DaemonSet says which image it uses."""
    version = cluster.driver_objects.get(kind="NVIDIADriver").version
    Operand.objects.update(image=UBUNTU.format(version))
    return cluster


def asked(plan: Plan, owner, **given) -> PlanPull:
    return ask(plan, actor=owner, **{"reason": "Before the window.", "now": NOON} | given)


def nodes(pull: PlanPull) -> list[tuple[str, str]]:
    return [(node.node_name, node.image) for node in pulls_on_page([pull])[0].nodes]


def test_one_node_of_the_one_system_is_written_down_and_nothing_else(told, owner):
    plan = a_draft(told, owner)

    pull = asked(plan, owner)

    assert [image for _, image in nodes(pull)] == [UBUNTU.format(NEW)]
    (node,) = pulls_on_page([pull])[0].nodes
    assert (node.system, node.outcome) == ("ubuntu22.04", "")
    (entry,) = AuditEntry.objects.filter(subject=pull.operation.mark, verb="operation.start-pull-image")
    assert (entry.actor, entry.reason) == ("owner", "Before the window.")
    assert list(entry.evidence["options"]["driver_pull"]["images"].values()) == [node.image]
    assert plan.events.first().to == "image-pull"


def test_of_each_system_one_and_the_node_that_goes_first(told, owner):
    version = told.driver_objects.get(kind="NVIDIADriver").version
    other = an_operand(
        told, name="driver-rhel", owner_uid=told.driver_objects.get(kind="NVIDIADriver").uid,
        node_selector=SELECTOR, image=RHEL.format(version),
    )  # fmt: skip
    node = a_node(told, "node-9")
    a_pod(node, "driver-9", namespace="gpu-operator", gpus=0, operand="driver", owner_uid=other.uid)

    pull = asked(a_draft(told, owner), owner)

    assert {image for _, image in nodes(pull)} == {UBUNTU.format(NEW), RHEL.format(NEW)}
    assert ("node-9", RHEL.format(NEW)) in nodes(pull)


def test_as_many_nodes_as_were_asked_for_in_the_order_in_which_they_go(told, owner):
    plan = a_started_plan(told, owner)
    in_order = [target.node_name for stage in plan.stages.forward() for target in stage.targets.all()]

    pull = asked(plan, owner, nodes_each=2)

    assert [name for name, _ in nodes(pull)] == in_order[:2]


def test_a_node_that_is_not_ready_pulls_nothing(told, owner):
    plan = a_started_plan(told, owner)
    first = plan.stages.get(index=0).targets.get()
    told.nodes.filter(uid=first.node_uid).update(is_ready=False)

    assert nodes(asked(plan, owner))[0][0] != first.node_name


def test_nodes_whose_image_nobody_can_tell_are_named(told, owner):
    plan = a_draft(told, owner)
    told.pods.get(name="driver-1").delete()

    assert asked(plan, owner).left_out == "1 node has no driver pod that shows the image: node-1."


def test_where_nobody_can_tell_any_image_it_is_refused(cluster, owner):
    with pytest.raises(Refusal, match="3 nodes have no driver pod that shows the image"):
        asked(a_draft(cluster, owner), owner)


def test_the_same_key_again_is_the_same_pull(told, owner):
    plan = a_draft(told, owner)

    one, other = asked(plan, owner, key="a1"), asked(plan, owner, key="a1")

    assert one == other
    assert Operation.objects.count() == 1


def call_off(pull: PlanPull) -> None:
    commands.cancel(pull.operation, actor="ben", reason="Not today.", now=NOON)


def test_a_pull_that_was_called_off_is_not_answered_again(told, owner):
    plan = a_draft(told, owner)
    call_off(asked(plan, owner, key="a1"))

    with pytest.raises(Refusal, match=r"no longer in effect\. Cancel by ben: Not today\."):
        asked(plan, owner, key="a1")


def test_a_pull_of_the_version_of_before_is_not_answered_again(told, owner):
    plan = a_draft(told, owner)
    asked(plan, owner, key="a1")
    Plan.objects.update(to_version="590.1.2")

    with pytest.raises(Refusal, match=r"The draft was edited\. Its target is now 590\.1\.2"):
        asked(plan, owner, key="a1")


def test_a_key_that_pulled_something_else_is_refused(told, owner):
    plan = a_draft(told, owner)
    asked(plan, owner, key="a1")

    with pytest.raises(Refusal, match="was already used for"):
        asked(plan, owner, key="a1", nodes_each=2)


def test_anothers_equal_key_is_another_pull(told, owner):
    plan = a_draft(told, owner)
    first = asked(plan, owner, key="a1")
    Operation.objects.update(state=OperationState.FINISHED)

    assert asked(plan, a_user("ben", role="operator"), key="a1") != first


def test_two_who_send_one_key_at_once_make_one_pull(told, owner, monkeypatch):
    """The second one's look at the key comes before the first one's pull is committed."""
    plan, truly, looks = a_draft(told, owner), image_pulls._pull_of_key, []
    first = asked(plan, owner, key="a1")
    monkeypatch.setattr(image_pulls, "_pull_of_key", lambda *given: truly(*given) if looks else looks.append(1))

    assert asked(plan, owner, key="a1") == first


def test_a_second_one_loses_while_the_first_is_under_way(told, owner):
    plan = a_draft(told, owner)
    asked(plan, owner, key="a1")

    with (
        pytest.raises(Refusal, match="An image pull of this plan is already in progress"),
        transaction.atomic(),
    ):
        asked(plan, owner, key="a2")

    assert Operation.objects.count() == 1


@pytest.mark.parametrize("nodes_each", [0, MOST_EACH + 1])
def test_a_number_that_makes_no_sense_names_its_field(told, owner, nodes_each: int):
    with pytest.raises(BadPlan) as refused:
        asked(a_draft(told, owner), owner, nodes_each=nodes_each)

    assert refused.value.problems[0]["field"] == "nodes_each"


@pytest.mark.parametrize("state", ["rolling-back", "aborting", "promoted", "discarded"])
def test_a_plan_that_needs_no_image_any_more_pulls_none(told, owner, state: str):
    plan = in_state(a_draft(told, owner), state)

    with pytest.raises(Refusal, match="and no longer needs its image"):
        asked(plan, owner)


def test_in_a_cluster_that_is_only_watched_nothing_is_asked_for(told, owner):
    plan = a_draft(told, owner)
    Cluster.objects.update(mode="observe-only")
    plan.cluster.refresh_from_db()

    with pytest.raises(Refusal, match="its mode is observe-only"):
        asked(plan, owner)


def test_in_a_frozen_cluster_nothing_is_asked_for(told, owner):
    plan = a_draft(told, owner)
    Freeze.objects.create(cluster=told, by="bob", at=NOON, reason="quarter end")

    with pytest.raises(Refusal, match="is frozen by bob: quarter end"):
        asked(plan, owner)
    assert not Operation.objects.exists()


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"state": "discarded"}, "The plan is discarded and no longer needs its image."),
        ({"state": "rolling-back"}, "The plan is rolling back and no longer needs its image."),
        ({"to_version": "580.105.08"}, "The draft was edited. Its target is now 580.105.08."),
    ],
)
@pytest.mark.parametrize("state", ["running", "paused"])
def test_a_pull_without_a_purpose_is_cancelled_with_that_reason(told, owner, columns, why: str, state: str):
    pull = asked(a_draft(told, owner), owner)
    Operation.objects.update(state=state)
    Plan.objects.update(**columns)

    for _ in range(2):
        cancel_obsolete_pulls(now=NOON)

    operation = Operation.objects.get()
    assert (operation.state, operation.state_reason) == ("cancelled", f"Cancel by quarterdeck: {why}")
    assert AuditEntry.objects.filter(subject=pull.operation.mark, verb="operation.cancel").count() == 1


def test_a_pull_that_its_plan_needs_goes_on(told, owner):
    asked(a_draft(told, owner), owner)

    cancel_obsolete_pulls(now=NOON)

    assert Operation.objects.get().state == "running"


def test_a_cancellation_loses_against_whoever_was_faster(told, owner, monkeypatch):
    """Its next sweep looks again."""
    asked(a_draft(told, owner), owner)
    Plan.objects.update(state="discarded")

    def finish_first(pull: PlanPull) -> str:
        Operation.objects.update(state=OperationState.FINISHED)
        return "The plan is discarded."

    monkeypatch.setattr(image_pulls, "why_obsolete", finish_first)
    cancel_obsolete_pulls(now=NOON)

    assert Operation.objects.get().state == OperationState.FINISHED


def test_each_system_is_tried_before_the_second_node_of_one(told, owner):
    """An operation pauses after its first failures: these leave no system untried."""
    version = told.driver_objects.get(kind="NVIDIADriver").version
    other = an_operand(
        told, name="driver-rhel", owner_uid=told.driver_objects.get(kind="NVIDIADriver").uid,
        node_selector=SELECTOR, image=RHEL.format(version),
    )  # fmt: skip
    for number in (8, 9):
        node = a_node(told, f"node-{number}")
        a_pod(node, f"driver-{number}", namespace="gpu-operator", gpus=0, operand="driver", owner_uid=other.uid)

    pulled = [image for _, image in nodes(asked(a_draft(told, owner), owner, nodes_each=2))]

    assert pulled == [RHEL.format(NEW), UBUNTU.format(NEW)] * 2


def test_an_edit_in_between_asks_for_no_old_image(told, owner, monkeypatch):
    plan, choose = a_draft(told, owner), image_pulls._choose

    def edit_meanwhile(*given, **more):
        Plan.objects.update(to_version="590.1.2")
        return choose(*given, **more)

    monkeypatch.setattr(image_pulls, "_choose", edit_meanwhile)
    with pytest.raises(Refusal, match="The draft was edited"):
        asked(plan, owner)
    assert not Operation.objects.exists()
