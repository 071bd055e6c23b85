"""What a plan says last rests on the API server's own list, newer than its last act: rows are late, and nodes leave."""

from datetime import timedelta

import pytest

from gpu.labels import CORDONED_BY, HELD_SINCE, PROVES_FOR
from kube import client
from kube.structs.node import NodeMeta, NodeSeen, NodeSpec
from rollouts.commands import plan_control
from rollouts.engine.act.holds import want
from rollouts.engine.leftovers import what_is_left
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Hold, Target
from rollouts.queries.plan_view import plan_on_page
from simulator.kinds import JOB
from tests.make import NOON
from tests.rollouts.engine.ground import CANARY, HELD_BY, NEW, NODES, OLD, REST, UPGRADE_SKIP, UPGRADE_STATE, Ground
from tests.variants import nightly_but_first
from wording.instants import to_the_second

pytestmark = pytest.mark.rounds


def say(verb, ground: Ground) -> None:
    verb(ground.plan, actor=ground.ada, reason="It is odd.", now=ground.clock())


def operator_calls_done(ground: Ground) -> None:
    """As it does once the mark of a node that never changed was cleared."""
    for name in NODES:
        if UPGRADE_STATE not in ground.labels(name):
            ground.set_state(name, "upgrade-done")


def rolled_back(ground: Ground, most: int = 12) -> None:
    for _ in range(most):
        operator_calls_done(ground)
        if ground.round().is_final:
            return


def test_an_abort_in_the_rollback_does_not_end_on_old_rows(ground: Ground):
    """The observer stands still, a node is let go, the plan is given up: the operator is changing it."""
    ground.armed()
    ground.rounds(2)
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(3)
    say(plan_control.roll_back, ground)
    ground.rounds(3)
    for name in NODES:
        ground.set_state(name, "upgrade-required" if name == CANARY else "upgrade-done")
    ground.rounds(4)
    ground.writes()
    while CANARY not in ground.releases():
        ground.round(look=False)
    ground.set_state(CANARY, "cordon-required")  # the operator has begun, and no row says so

    say(plan_control.abort, ground)
    for _ in range(4):
        ground.round(look=False)

    assert ground.plan.state == PlanState.ABORTING
    assert ground.plan.waiting_for == f"Waiting until the operator finishes {CANARY}."
    assert CANARY in ground.held()


@pytest.mark.nightly
def test_an_abort_calls_back_what_was_released_before_anything_else(ground: Ground):
    ground.armed()
    ground.rounds(2)
    assert CANARY not in ground.held()

    say(plan_control.abort, ground)
    ground.round(look=False)

    assert ground.held() == set(NODES)
    assert ground.target().state == TargetState.HELD
    assert ground.version() == NEW


@pytest.mark.parametrize("verb", nightly_but_first([plan_control.roll_back, plan_control.abort]))
def test_no_hold_is_left_on_a_node_that_left_the_driver_object(ground: Ground, verb):
    ground.armed()
    ground.leave(REST[0])

    say(verb, ground)
    rolled_back(ground)

    assert ground.plan.is_final, ground.plan.waiting_for
    assert ground.held() == set()
    assert ground.labels(REST[0]).get(UPGRADE_STATE) != "upgrade-required"
    assert not Hold.objects.filter(plan=ground.plan).blocking_changes().exists()


@pytest.mark.nightly
@pytest.mark.parametrize("verb", [plan_control.roll_back, plan_control.abort])
def test_an_old_version_that_we_did_not_put_back_ourselves_is_back_all_the_same(ground: Ground, verb):
    """Somebody else did, or a worker that died right after its write."""
    ground.armed()
    ground.write_version(OLD)
    ground.rounds(2)
    assert ground.plan.state == PlanState.HALTED

    say(verb, ground)
    rolled_back(ground)

    assert ground.plan.is_final, ground.plan.waiting_for
    assert ground.plan.put_back_at is not None
    assert not ground.plan.is_armed


@pytest.mark.nightly
def test_an_old_version_that_is_gone_again_is_put_back_and_told(ground: Ground):
    """A write of ours that came late, or somebody else's."""
    ground.armed()
    ground.write_version(OLD)
    ground.rounds(2)
    say(plan_control.roll_back, ground)
    ground.round()
    told = ground.plan.events.filter(to="version-written")
    assert not ground.plan.is_armed
    assert told.count() == 1

    ground.write_version(NEW)
    ground.round()

    assert ground.version() == OLD
    assert told.count() == 2
    rolled_back(ground)
    assert ground.plan.is_final, ground.plan.waiting_for
    assert not ground.plan.is_armed


@pytest.mark.nightly
@pytest.mark.parametrize("verb", [plan_control.roll_back, plan_control.abort])
def test_a_node_that_somebody_else_held_and_freed_since_is_released_as_well(ground: Ground, verb):
    """The plan held it then, as every node of an armed object: that label is ours, whoever had one there before."""
    ground.label(REST[1], **{UPGRADE_SKIP: "true"})
    ground.look()
    ground.armed()
    ground.free(REST[1])
    ground.rounds(2)
    assert ground.node(REST[1])["metadata"]["annotations"][HELD_BY] == ground.plan.mark

    say(verb, ground)
    rolled_back(ground)

    assert ground.plan.is_final, ground.plan.waiting_for
    assert ground.held() == set()


def test_a_hold_that_no_row_shows_is_found_before_the_plan_ends(ground: Ground):
    """A label of ours came back behind the rows: a restored object, a worker that died."""
    ground.armed()
    say(plan_control.roll_back, ground)
    ground.rounds(3)
    for name in NODES:
        ground.set_state(name, "upgrade-done")
    ground.round()
    ground.look()
    ground.patch_node(
        REST[1],
        {
            "metadata": {
                "labels": {UPGRADE_SKIP: "true"},
                "annotations": {HELD_BY: ground.plan.mark},
            }
        },
    )

    ground.round(look=False)
    rolled_back(ground)

    assert ground.plan.state == PlanState.ROLLED_BACK
    assert ground.held() == set()
    assert ground.version() == OLD


@pytest.mark.nightly
def test_a_rollback_that_ends_while_it_is_paused_says_how_it_ended(ground: Ground):
    """A pause lets nothing more go, and there is nothing to let go back: the plan ends, and the pause with it."""
    ground.armed()
    say(plan_control.roll_back, ground)
    say(plan_control.pause, ground)

    rolled_back(ground)

    assert ground.plan.state == PlanState.ROLLED_BACK
    assert not ground.plan.commands.in_force().exists()
    assert plan_on_page(ground.plan, now=ground.clock()).why == ground.plan.reason


@pytest.mark.nightly
def test_a_node_that_leaves_in_the_middle_is_released_and_out_of_its_stage(ground: Ground):
    ground.armed()
    ground.leave(REST[0])

    ground.rounds(3)

    gone = ground.target(REST[0])
    assert (gone.state, gone.is_lost) == (TargetState.EXCLUDED, False)
    assert gone.reason == "The node is no longer selected by NVIDIADriver h100."
    assert REST[0] not in ground.held()


@pytest.mark.nightly
def test_a_node_that_leaves_before_its_label_is_placed_keeps_no_version_from_being_written(ground: Ground):
    """The worker died between the row of the hold and its label: it was wanted of a node that nobody could hold."""
    ground.start()
    want(
        ground.take_lease(),
        {ground.node(name)["metadata"]["uid"]: name for name in NODES},
        is_wanted=True,
        now=ground.clock(),
    )
    ground.clock.move(minutes=1)
    ground.leave(REST[0])

    ground.rounds(5)

    assert ground.version() == NEW, ground.plan.waiting_for
    assert ground.held() == set(NODES) - {REST[0]}
    assert not Hold.objects.filter(plan=ground.plan, node_name=REST[0]).blocking_changes().exists()


def test_a_target_that_is_deleted_is_out_of_its_stage_and_the_stage_goes_on(ground: Ground):
    ground.armed()
    ground.delete(REST[0])
    ground.rounds(2)

    assert ground.target(REST[0]).reason == "The node was deleted."
    assert ground.plan.state == PlanState.PROMOTING
    assert CANARY not in ground.held()


def test_a_target_that_is_deleted_after_it_was_released_counts_as_failed(ground: Ground):
    ground.armed()
    ground.rounds(2)
    ground.delete(CANARY)

    ground.rounds(3)

    assert ground.target().is_lost
    assert ground.plan.state == PlanState.HALTED
    assert ground.plan.reason == f"{CANARY} failed. The node was deleted."


def test_a_node_that_is_made_again_is_a_late_node_and_no_target(ground: Ground):
    ground.armed()
    ground.delete(REST[0])
    ground.join(REST[0])

    ground.rounds(3)

    assert ground.target(REST[0]).reason == "The node was deleted and created again with the same name."
    assert Target.objects.filter(stage__plan=ground.plan, node_name=REST[0]).count() == 1
    assert REST[0] in ground.held()


@pytest.mark.nightly
def test_a_node_deleted_while_all_are_being_held_keeps_the_version_from_nothing(ground: Ground):
    ground.start()
    ground.round()
    ground.delete(REST[0])

    ground.rounds(3)

    assert ground.plan.state == PlanState.PROMOTING, ground.plan.waiting_for


def test_who_is_gone_is_not_said_on_rows_alone(ground: Ground):
    """A list that was read halfway has no row of a node that is there."""
    ground.armed()
    ground.look()
    ground.cluster.nodes.filter(name=REST[0]).delete()

    ground.round(look=False)

    assert ground.target(REST[0]).state == TargetState.HELD


def test_the_version_goes_back_only_once_every_node_is_held_whatever_rows_say(ground: Ground):
    """Z5, Z25: a wave was let go, and no row shows that its label is off."""
    ground.armed()
    ground.round()
    ground.free(REST[1])
    say(plan_control.roll_back, ground)
    ground.writes()

    for _ in range(3):
        ground.round(look=False)

    held_first = [entry["path"].rsplit("/", 1)[-1] for entry in ground.writes()]
    assert held_first.index(CANARY) < held_first.index("h100")
    assert held_first.index(REST[1]) < held_first.index("h100")
    assert ground.version() == OLD


def changed_canary(ground: Ground) -> None:
    ground.armed()
    ground.rounds(2)
    ground.take_the_new_driver(CANARY)
    ground.set_state(CANARY, "upgrade-done")
    ground.rounds(3)
    assert ground.target().state == TargetState.CHANGED


@pytest.mark.nightly
def test_a_node_that_is_made_again_in_the_rollback_is_another_target_of_its_name(ground: Ground):
    """With all that it carried, as whoever restores nodes makes it: two targets of a stage have one name then."""
    changed_canary(ground)
    say(plan_control.roll_back, ground)
    for name in REST:
        ground.set_state(name, "upgrade-done")
    ground.rounds(4)
    rollback = ground.plan.stages.get(kind="rollback")
    assert rollback.targets.get().node_name == CANARY
    before = ground.node(CANARY)["metadata"]
    ground.delete(CANARY)
    ground.join(CANARY, like=REST[0])
    ground.patch_node(CANARY, {"metadata": {"labels": before["labels"], "annotations": before["annotations"]}})

    ground.rounds(8)

    old, new = rollback.targets.order_by("position")
    assert (old.node_uid, old.state) == (before["uid"], TargetState.EXCLUDED)
    assert (new.node_uid, new.state) == (ground.node(CANARY)["metadata"]["uid"], TargetState.HELD)


@pytest.mark.nightly
@pytest.mark.parametrize("verb", [plan_control.roll_back, plan_control.abort])
def test_a_changed_node_that_is_deleted_in_the_rollback_did_not_come_back(ground: Ground, verb):
    """Nor was it never changed: what the end says of it is what became of it."""
    changed_canary(ground)
    say(verb, ground)
    ground.rounds(2)
    ground.delete(CANARY)
    for name in REST:
        ground.set_state(name, "upgrade-done")

    for _ in range(12):
        for name in REST:
            if UPGRADE_STATE not in ground.labels(name):
                ground.set_state(name, "upgrade-done")
        if ground.round().is_final:
            break

    shown = Target.objects.with_holds().forward().get(stage__plan=ground.plan, node_name=CANARY)
    assert ground.plan.is_final, ground.plan.waiting_for
    assert f"{CANARY} was deleted; no other node had changed" in ground.plan.reason
    assert (shown.shown_state, shown.reason) == (TargetState.EXCLUDED, "The node was deleted.")
    assert ground.held() == set()


# Hazard Z42: the last sentence is of what is there now, whoever made it


@pytest.mark.parametrize("verb", [plan_control.roll_back, plan_control.abort])
def test_the_end_names_nodes_that_somebody_left_cordoned_and_what_lets_pods_in(ground: Ground, verb):
    """The operator had cordoned them, and autoUpgrade was switched off and on in between."""
    ground.armed()
    for name in REST:
        ground.cordon(name)

    say(verb, ground)
    rolled_back(ground)

    assert ground.plan.is_final, ground.plan.waiting_for
    said = f"{REST[0]}, {REST[1]} are cordoned: kubectl uncordon {REST[0]} {REST[1]}."
    said = f"As of {to_the_second(ground.plan.state_since)}: {said}"
    assert ground.plan.reason.endswith(said)
    assert ground.plan.waiting_for.endswith(said)


@pytest.mark.nightly
def test_the_end_of_a_promotion_names_them_too(ground: Ground):
    ground.armed()
    while ground.plan.is_under_way and ground.clock() < NOON + timedelta(minutes=2):
        for name in set(NODES) - ground.held():
            ground.take_the_new_driver(name)
            ground.set_state(name, "upgrade-done")
        if not ground.held():
            ground.cordon(REST[0])
        ground.round()

    assert ground.plan.state == PlanState.PROMOTED, ground.plan.waiting_for
    assert f"{REST[0]} is cordoned: kubectl uncordon {REST[0]}." in ground.plan.reason


@pytest.mark.nightly
def test_the_end_names_holds_of_others_annotations_and_jobs(ground: Ground):
    ground.label(REST[1], **{UPGRADE_SKIP: "true"})
    ground.look()
    ground.armed()
    ground.patch_node(CANARY, {"metadata": {"annotations": {CORDONED_BY: ground.plan.mark}}})
    job = {"metadata": {"name": "test-it", "labels": {PROVES_FOR: ground.plan.mark}}, "spec": {}}
    ground.store.seed(JOB, job, "gpu-operator")

    nodes = [node for node in client.list_nodes(ground.connection) if node.name in NODES]
    said = what_is_left(ground.plan, nodes, ground.connection, now=NOON, room=1000)

    assert f"kubectl label node {' '.join(NODES)} {UPGRADE_SKIP}-." in said
    assert f"kubectl annotate node {REST[0]} {CANARY} {CORDONED_BY}- {HELD_BY}- {HELD_SINCE}-." in said
    assert said.endswith("Job test-it of this plan is not deleted: kubectl -n gpu-operator delete job test-it.")


def test_with_long_names_the_end_names_fewer_nodes_and_every_kind(ground: Ground):
    """All four kinds were left on 24 nodes; the column cut the sentence in the middle of the second command."""
    ground.armed()
    named = [f"ip-10-0-{number}-45.eu-west-1.compute.internal-gpu-pool" for number in range(24)]
    annotations = {HELD_BY: ground.plan.mark, HELD_SINCE: "x", CORDONED_BY: ground.plan.mark}
    nodes = [
        NodeSeen(
            metadata=NodeMeta(name=name, uid=name, labels={UPGRADE_SKIP: "true"}, annotations=annotations),
            spec=NodeSpec(unschedulable=True),
        )
        for name in named
    ]
    job = {"metadata": {"name": "test-it", "labels": {PROVES_FOR: ground.plan.mark}}, "spec": {}}
    ground.store.seed(JOB, job, "gpu-operator")

    said = what_is_left(ground.plan, nodes, ground.connection, now=NOON, room=800)

    assert len(said) <= 800
    parts = ("kubectl uncordon", "kubectl label node", "kubectl annotate node", "delete job test-it.")
    assert [part for part in parts if part not in said] == []
    assert said.count("more)") == 3


def test_the_end_of_a_plan_that_leaves_nothing_says_nothing_of_it(ground: Ground):
    ground.armed()
    say(plan_control.roll_back, ground)
    rolled_back(ground)

    assert "kubectl" not in ground.plan.reason


def test_a_plan_ends_where_its_jobs_may_not_be_listed(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    ground.armed()
    say(plan_control.roll_back, ground)

    def refuse(*_: object, **__: object) -> None:
        raise client.Forbidden("jobs.batch is forbidden.")

    monkeypatch.setattr(client, "list_jobs", refuse)
    rolled_back(ground)

    assert ground.plan.state == PlanState.ROLLED_BACK
    assert "It is unknown whether Jobs of this plan still exist: jobs.batch is forbidden." in ground.plan.reason
