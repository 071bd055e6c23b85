import pytest

from edges.transition_errors import LostRace
from gpu.labels import UPGRADE_SKIP
from kube import client
from rollouts.commands import plan_control
from rollouts.engine.act.version import write_version
from rollouts.engine.act.writer import Writer
from rollouts.engine.decide.acts import WriteVersion
from rollouts.lifecycle import PlanState
from rollouts.models import Hold, Plan
from tests.rollouts.engine.ground import CANARY, NEW, NODES, OLD, REST, Ground

FORWARD = WriteVersion(OLD, NEW)


@pytest.fixture
def held(ground: Ground) -> Ground:
    ground.start()
    ground.round()
    ground.writes()
    return ground


def test_writes_the_version_and_tests_the_old_one(held: Ground):
    held.act(FORWARD)

    (write,) = held.writes()
    assert {"op": "test", "path": "/spec/version", "value": OLD} in write["body"]
    assert held.version() == NEW
    assert held.plan.armed_since is not None


def test_what_was_written_is_not_written_again(held: Ground):
    held.act(FORWARD)
    held.writes()

    with pytest.raises(client.Conflict):
        held.act(FORWARD)

    assert not [write for write in held.writes() if write["code"] == 200]


@pytest.mark.parametrize("act", [FORWARD, WriteVersion(NEW, OLD)])
def test_an_object_that_was_made_again_under_its_name_is_not_written(held: Ground, act: WriteVersion):
    """It may have come since the round looked: what was previewed and approved is not what is there."""
    Plan.objects.filter(pk=held.plan.pk).update(object_uid="uid-of-the-one-before")
    held.plan.refresh_from_db()

    with pytest.raises(client.Absent, match="is not the object of this plan"):
        held.act(act)

    assert held.writes() == []
    assert held.version() == OLD


def test_a_label_that_vanished_since_keeps_the_version_from_being_written(held: Ground):
    """Z1: labels are read back from the API before the version is written."""
    held.free(CANARY)

    held.act(FORWARD)

    assert held.version() == OLD
    assert held.plan.write_intended_at is None
    assert Hold.objects.get(plan=held.plan, node_name=CANARY).placed_at is None


def test_a_version_that_is_not_written_is_not_said_to_be(held: Ground):
    """The rows show every label still."""
    held.look()
    held.free(CANARY)

    plan = held.round(look=False)

    assert held.version() == OLD
    assert plan.waiting_for == f"{NEW} is not written yet: the API server shows {CANARY} without its hold."


def test_a_label_that_says_false_since_keeps_the_version_from_being_written(held: Ground):
    """Z1: the operator reads `true`, and nothing else, as a hold."""
    held.label(CANARY, **{UPGRADE_SKIP: "false"})

    held.act(FORWARD)

    assert held.version() == OLD
    assert held.plan.write_intended_at is None


def test_a_node_that_joined_since_keeps_the_version_from_being_written(held: Ground):
    """Z1, Z25: the rows do not show it yet; its driver pod is there."""
    held.join("gpu-h100-004")

    held.act(FORWARD)

    assert held.version() == OLD
    assert held.plan.write_intended_at is None


@pytest.mark.parametrize("command", [plan_control.halt, plan_control.pause, plan_control.abort])
def test_the_intent_loses_to_a_person(held: Ground, command):
    plan = held.take_lease()
    command(Plan.objects.get(pk=plan.pk), actor=held.ada, reason="Stop.", now=held.clock())
    with pytest.raises(LostRace):
        write_version(Writer(plan, held.connection, held.clock, plan.commands.newest()), FORWARD)

    plan.refresh_from_db()
    assert plan.write_intended_at is None
    assert held.version() == OLD


def test_a_version_that_somebody_else_wrote_is_not_overwritten(held: Ground):
    """Z9."""
    held.write_version("570.1.1")

    with pytest.raises(client.Conflict):
        held.act(FORWARD)

    assert held.version() == "570.1.1"


def test_putting_it_back_is_recorded(held: Ground):
    held.act(FORWARD)
    Plan.objects.filter(pk=held.plan.pk).update(state=PlanState.ROLLING_BACK)

    held.act(WriteVersion(NEW, OLD))

    assert held.version() == OLD
    assert held.plan.put_back_at is not None
    assert not held.plan.is_armed


def test_a_node_that_joined_since_is_held_before_the_version_is_put_back(held: Ground):
    """Z5, Z25: no row shows it, or that it was made again; the operator would take it outside of any wave."""
    held.act(FORWARD)
    Plan.objects.filter(pk=held.plan.pk).update(state=PlanState.ROLLING_BACK)
    held.join("gpu-h100-004")
    held.delete(CANARY)
    held.join(CANARY, like=REST[0])

    held.act(WriteVersion(NEW, OLD))

    assert held.version() == OLD
    assert held.held() == {*NODES, "gpu-h100-004"}
    uids = {held.node(name)["metadata"]["uid"] for name in ("gpu-h100-004", CANARY)}
    assert Hold.objects.in_force().blocking_changes().filter(plan=held.plan, node_uid__in=uids).count() == 2


def test_nobody_is_said_to_have_freed_a_node_that_was_made_again(held: Ground):
    held.delete(CANARY)
    held.join(CANARY, like=REST[0])

    held.act(FORWARD)

    assert held.version() == OLD
    assert not held.plan.events.filter(to="hold-removed").exists()


def test_a_worker_that_lost_its_turn_while_it_read_the_object_writes_nothing(
    held: Ground, monkeypatch: pytest.MonkeyPatch
):
    """Z1: others may have given the plan up since, and taken every label off."""
    writer, read = held.writer(), client.get_driver_object_whole

    def sleep_and_read(*asked):
        seen = read(*asked)
        held.clock.move(minutes=1)
        held.take_lease()
        return seen

    monkeypatch.setattr(client, "get_driver_object_whole", sleep_and_read)
    with pytest.raises(LostRace):
        write_version(writer, FORWARD)

    assert held.version() == OLD
