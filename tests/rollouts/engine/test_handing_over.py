"""Hazard Z38 in whole rounds: somebody else changes the object while nodes are held, and the plan is given up."""

from collections.abc import Callable, Iterator

import pytest

from edges.transition_errors import LostRace
from fleet.models import Operand, Pod
from operations.models import Disruption
from people.models import AuditEntry
from rollouts.commands import fleet_freezes, plan_control
from rollouts.commands.fleet_freezes import Where
from rollouts.commands.handover import hand_over
from rollouts.engine.act import node_handover
from rollouts.engine.act.holds import lift_holds
from rollouts.engine.decide.acts import HandOver, LiftHolds, ReleaseUnmanagedNodes
from rollouts.lifecycle import PlanState
from rollouts.models import Hold, Plan
from rollouts.queries.handover import handover_of
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.fleets.plan import Mode
from simulator.kinds import POD
from simulator.run import Simulation
from tests.rollouts.engine.ground import CANARY, NODES, OLD, REST, UPGRADE_STATE, Ground, a_ground
from tests.rollouts.engine.test_ends import rolled_back, say
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)
from tests.variants import nightly_but_first

pytestmark = pytest.mark.rounds
OTHER = "590.44.1"


@pytest.fixture(params=nightly_but_first([Mode.NVIDIA_DRIVER, Mode.CLUSTER_POLICY]))
def either_ground(request, db: None, start: Callable[..., Simulation]) -> Iterator[Ground]:  # noqa: F811
    simulation = start()
    made = a_ground(simulation, request.param)
    yield made
    made.connection.close()
    simulation.stop()


def hand(ground: Ground, **given) -> None:
    ground.look()
    given.setdefault("seen", handover_of(ground.plan).seen)
    hand_over(ground.plan, actor=ground.ada, reason="The fleet needs it.", now=ground.clock(), **given)
    ground.plan.refresh_from_db()


def queue_all(ground: Ground) -> None:
    """As the operator does with every held node whose driver is not the wanted one."""
    for name in ground.held():
        ground.set_state(name, "upgrade-required")


def halted_while_holding(ground: Ground, **given) -> None:
    """Every node is held, the version is not written yet, and somebody else writes a third one."""
    ground.start(**given)
    ground.round()
    ground.write_version(OTHER)
    queue_all(ground)
    ground.round()
    assert ground.plan.state == PlanState.HALTED
    assert ground.plan.write_intended_at is None
    ground.writes()


def given_up(ground: Ground, **given) -> None:
    halted_while_holding(ground, **given)
    say(plan_control.abort, ground)
    ground.rounds(2)


def test_no_node_goes_until_a_person_decides_and_then_in_waves(either_ground: Ground):
    """The whole story: held, a third version, halted, everything stopped, given up."""
    ground = either_ground
    halted_while_holding(ground)
    everybody = ground.held()
    stop = fleet_freezes.stop(actor="bea", reason="Smoke.", now=ground.clock())

    say(plan_control.abort, ground)
    ground.rounds(4)

    assert ground.releases() == []
    assert ground.plan.state == PlanState.ABORTING
    assert f"Somebody else set the version to {OTHER}." in ground.plan.waiting_for

    fleet_freezes.lift(stop, actor="bea", reason="A toaster.", now=ground.clock())
    ground.rounds(4)

    assert ground.releases() == []
    assert ground.held() == everybody
    assert "A person decides: hand over the nodes, or restore" in ground.plan.waiting_for

    hand(ground, version=OTHER)
    ground.rounds(4)
    (first,) = ground.releases()
    assert ground.held() == everybody - {first}

    gone = {first}
    while ground.plan.is_under_way and len(gone) <= len(everybody):
        for name in gone:
            ground.take_the_new_driver(name, OTHER)
            ground.set_state(name, "upgrade-done")
        ground.rounds(2)
        fresh = ground.releases()
        assert len(fresh) <= 1
        gone |= set(fresh)

    assert gone == everybody
    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert ground.plan.reason.startswith(f"Given up. ada released the nodes to {OTHER}")
    assert ground.version() == OTHER
    assert not Hold.objects.filter(plan=ground.plan).blocking_changes().exists()


def test_who_decided_and_why_is_kept(ground: Ground):
    given_up(ground)

    hand(ground)

    command = ground.plan.commands.get(verb="handover")
    entry = AuditEntry.objects.filter(subject=ground.plan.mark, verb="handover").get()
    assert (command.actor, command.reason) == ("ada", "The fleet needs it.")
    assert entry.evidence["handed_to"] == OTHER


def test_a_template_of_somebody_else_while_holding_holds_them_as_well(ground: Ground):
    ground.start()
    ground.round()
    ground.change_driver(env=[{"name": "A", "value": "b"}])
    ground.round()
    assert ground.plan.state == PlanState.HALTED
    say(plan_control.abort, ground)
    ground.writes()

    ground.rounds(3)

    assert (ground.releases(), ground.plan.state) == ([], PlanState.ABORTING)
    hand(ground)
    ground.rounds(6)
    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for


def test_an_owner_of_the_object_that_came_while_holding_halts_and_holds(ground: Ground):
    """Z9: it may write its own version the moment nothing is held any more."""
    ground.start()
    ground.round()
    tracked = {"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "gpu:nvidia.com/NVIDIADriver:/h100"}}}
    ground.store.patch(NVIDIA_DRIVER, "h100", tracked, how="merge")
    ground.round()
    assert ground.plan.state == PlanState.HALTED
    assert "NVIDIADriver h100 now belongs to Argo CD gpu" in ground.plan.reason
    say(plan_control.abort, ground)
    ground.writes()

    ground.rounds(3)

    assert (ground.releases(), ground.plan.state) == ([], PlanState.ABORTING)


def test_with_the_old_version_put_back_the_nodes_go_and_none_is_emptied(ground: Ground):
    given_up(ground)

    ground.write_version(OLD)
    ground.rounds(4)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert ground.held() == set()
    assert not [name for name in NODES if ground.labels(name).get(UPGRADE_STATE) == "upgrade-required"]


@pytest.mark.parametrize("binds_rollbacks", [False, True])
def test_every_freeze_binds_what_is_handed_over(ground: Ground, *, binds_rollbacks: bool):
    given_up(ground)
    row = fleet_freezes.freeze(
        Where(ground.cluster), actor="bea", reason="Quarter end.", binds_rollbacks=binds_rollbacks, now=ground.clock()
    )
    hand(ground)

    ground.rounds(3)

    assert ground.releases() == []
    assert ground.plan.waiting_for == "Cluster north is frozen by bea: Quarter end."
    fleet_freezes.lift(row, actor="bea", reason="It is over.", now=ground.clock())
    ground.rounds(3)
    assert len(ground.releases()) == 1


@pytest.mark.nightly
def test_a_freeze_holds_again_what_was_handed_over_and_has_not_begun(ground: Ground):
    """Z3."""
    given_up(ground)
    hand(ground)
    ground.rounds(2)
    assert len(ground.held()) == len(NODES) - 1

    fleet_freezes.freeze(Where(ground.cluster), actor="bea", reason="Quarter end.", now=ground.clock())
    ground.round()

    assert ground.held() == set(NODES)


def handing(ground: Ground):
    """A worker that is about to let a node go."""
    given_up(ground)
    hand(ground)
    ground.look()
    return ground.writer(), HandOver({ground.node(CANARY)["metadata"]["uid"]: CANARY})


def test_a_freeze_that_comes_between_decision_and_release_wins(ground: Ground):
    writer, act = handing(ground)
    fleet_freezes.freeze(Where(ground.cluster), actor="bea", reason="Quarter end.", now=ground.clock())

    with pytest.raises(LostRace, match="frozen by bea"):
        node_handover.hand_over(writer, act)

    assert ground.releases() == []
    assert not Disruption.objects.in_force().exists()


def test_a_plan_whose_decision_is_another_by_now_lets_nothing_go(ground: Ground):
    writer, act = handing(ground)
    Plan.objects.filter(pk=ground.plan.pk).update(handed_to="595.0.1")

    with pytest.raises(LostRace, match="The plan may no longer hand over its nodes"):
        node_handover.hand_over(writer, act)

    assert ground.releases() == []


def test_the_configmap_is_asked_before_each_node_that_is_released(ground: Ground):
    """Z33."""
    writer, act = handing(ground)
    ground.stop_everything("incident 4711")

    assert "incident 4711" in node_handover.hand_over(writer, act)
    assert ground.releases() == []


@pytest.mark.nightly
@pytest.mark.parametrize("act", [LiftHolds, ReleaseUnmanagedNodes])
def test_nor_is_a_node_released_that_nothing_changes(ground: Ground, act: type):
    ground.start()
    ground.round()
    ground.stop_everything("incident 4711")

    ground.act(act({ground.node(CANARY)["metadata"]["uid"]: CANARY}))

    assert CANARY in ground.held()


def test_a_version_that_is_written_between_decision_and_release_keeps_every_node(ground: Ground):
    """The round saw the old one, and the operator has queued nobody yet."""
    ground.start()
    ground.round()
    writer = ground.writer(asked=ground.driver_spec())
    ground.write_version(OTHER)
    ground.writes()

    said = lift_holds(writer, LiftHolds({ground.node(name)["metadata"]["uid"]: name for name in NODES}))

    assert said == "Somebody has changed NVIDIADriver h100 in the meantime. The plan reads it again."
    assert ground.releases() == []


@pytest.mark.nightly
def test_a_killed_worker_neither_loses_nor_doubles_a_node_that_is_handed_over(ground: Ground, monkeypatch):
    given_up(ground)
    hand(ground)

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(node_handover, "free_node", die)
        with pytest.raises(KeyboardInterrupt):
            ground.round()
    ground.clock.move(minutes=1)
    ground.rounds(3)

    assert len(ground.releases()) == 1
    assert Disruption.objects.in_force().count() == 1


@pytest.mark.nightly
def test_an_abort_after_the_write_holds_them_too(ground: Ground):
    ground.armed()
    ground.write_version(OTHER)
    ground.rounds(2)
    say(plan_control.abort, ground)
    ground.writes()

    ground.rounds(4)

    assert (ground.releases(), ground.plan.state) == ([], PlanState.ABORTING)
    assert ground.held() == set(NODES)


def left_for_another_object(ground: Ground, name: str) -> dict[str, str]:
    """Its driver pod is of another object's DaemonSet, and of an earlier template of that. The node, by its UID."""
    drivers = Operand.objects.filter(cluster=ground.cluster, operand="driver")
    theirs = drivers.exclude(owner_uid=ground.plan.object_uid).first()
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": theirs.name, "uid": theirs.uid, "controller": True}
    changed = {"labels": {"controller-revision-hash": "earlier"}, "ownerReferences": [owner]}
    ground.label(name, **{"nvidia.com/gpu.deploy.driver": "false"})
    pod = ground.driver_pod(name)
    ground.store.patch(POD, pod, {"metadata": changed}, "gpu-operator", how="merge")
    Pod.objects.filter(cluster=ground.cluster, name=pod).update(owner_uid=theirs.uid, revision_hash="earlier")
    return {ground.node(name)["metadata"]["uid"]: name}


def test_a_node_that_another_driver_object_would_change_stays_held(ground: Ground):
    """As the API server shows it, and no row yet."""
    ground.armed()
    left = left_for_another_object(ground, REST[0])

    ground.act(ReleaseUnmanagedNodes(left))

    assert REST[0] in ground.held()


@pytest.mark.nightly
def test_and_its_plan_ends_and_says_so(ground: Ground):
    ground.armed()
    left_for_another_object(ground, REST[0])
    say(plan_control.abort, ground)
    rolled_back(ground)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert ground.held() == {REST[0]}
