"""Taking a node out of the operator's queue, and putting one into it again (Z5)."""

from gpu.labels import UPGRADE_STATE, WAS_CORDONED
from gpu.upgrade_controller import UPGRADE_FAILED, UPGRADE_REQUIRED
from rollouts.engine.decide.acts import ClearUpgradeState, RequeueFailed
from tests.rollouts.engine.ground import CANARY, Ground

NOTED = {"metadata": {"annotations": {WAS_CORDONED: "true"}}, "spec": {"unschedulable": True}}


def test_who_leaves_the_queue_leaves_no_note_of_a_cordon_behind(ground: Ground):
    """Seen on the real operator: the next upgrade read it, and left a node cordoned that had been uncordoned since."""
    ground.start()
    ground.set_state(CANARY, UPGRADE_REQUIRED)
    ground.patch_node(CANARY, NOTED)

    ground.act(ClearUpgradeState({ground.node(CANARY)["metadata"]["uid"]: CANARY}))

    left = ground.node(CANARY)
    assert UPGRADE_STATE not in left["metadata"]["labels"]
    assert WAS_CORDONED not in left["metadata"].get("annotations", {})
    assert left["spec"]["unschedulable"]


def test_whom_the_operator_has_taken_on_keeps_both(ground: Ground):
    """Between look and act: there the note is what keeps somebody's cordon on."""
    ground.start()
    ground.set_state(CANARY, "cordon-required")
    ground.patch_node(CANARY, NOTED)

    ground.act(ClearUpgradeState({ground.node(CANARY)["metadata"]["uid"]: CANARY}))

    left = ground.node(CANARY)["metadata"]
    assert (left["labels"][UPGRADE_STATE], left["annotations"][WAS_CORDONED]) == ("cordon-required", "true")


def test_whom_the_operator_had_given_up_on_is_given_back_as_failed(ground: Ground):
    """It has cordoned the node, and uncordons it once it sees that its driver's pod is in sync and Ready."""
    ground.start()
    ground.set_state(CANARY, UPGRADE_REQUIRED)
    ground.patch_node(CANARY, {"spec": {"unschedulable": True}})
    uid = ground.node(CANARY)["metadata"]["uid"]

    ground.act(ClearUpgradeState({uid: CANARY}, frozenset({uid})))

    assert ground.labels(CANARY)[UPGRADE_STATE] == UPGRADE_FAILED


def test_who_is_queued_again_keeps_the_note(ground: Ground):
    ground.start()
    ground.set_state(CANARY, UPGRADE_FAILED)
    ground.patch_node(CANARY, NOTED)

    ground.act(RequeueFailed({ground.node(CANARY)["metadata"]["uid"]: CANARY}))

    left = ground.node(CANARY)["metadata"]
    assert (left["labels"][UPGRADE_STATE], left["annotations"][WAS_CORDONED]) == (UPGRADE_REQUIRED, "true")
