"""A plan where the ClusterPolicy says the one version of the cluster: every GPU node is held first (Z1)."""

from collections.abc import Callable, Iterator

import pytest

from fleet.models import Bookmark
from rollouts.commands import plan_control
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Hold
from simulator.fleets.plan import Mode
from simulator.run import Simulation
from tests.rollouts.engine.ground import NEW, OLD, Ground, a_ground
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)


@pytest.fixture
def ground(db: None, start: Callable[..., Simulation]) -> Iterator[Ground]:  # noqa: F811
    simulation = start()
    made = a_ground(simulation, Mode.CLUSTER_POLICY)
    yield made
    made.connection.close()
    simulation.stop()


def gpu_nodes(ground: Ground) -> set[str]:
    return set(ground.cluster.nodes.filter(is_gpu_node=True).values_list("name", flat=True))


def armed(ground: Ground):
    ground.start()
    ground.rounds(3)
    for name in gpu_nodes(ground):
        ground.set_state(name, "upgrade-required")
    return ground.rounds(2)


def test_every_gpu_node_is_held_before_the_version_is_written(ground: Ground):
    ground.start()
    everything = ground.rounds(3)

    patches = [one for one in ground.writes() if one["code"] == 200]
    written = next(number for number, one in enumerate(patches) if "clusterpolicies" in one["path"])
    labelled = {one["path"].rsplit("/", 1)[-1] for one in patches[:written]}
    assert labelled == gpu_nodes(ground) == ground.held()
    assert len(labelled) == 6
    assert ground.version() == NEW
    assert everything.state == PlanState.PROMOTING


def test_only_the_driver_of_the_policy_is_its_daemonset(ground: Ground):
    """The ClusterPolicy owns the DaemonSets of all operands: those of others have no driver in them."""
    ground.start()

    owned = [one["metadata"]["name"] for one in ground.daemonsets() if ground.owns(one)]
    assert len(owned) > 1
    assert len(ground.plan.sealed["revisions"]) == 1
    ground.rounds(3)
    assert not ground.plan.template_change


@pytest.mark.nightly
def test_what_changes_in_another_operand_is_not_its_template(ground: Ground):
    armed(ground)
    ground.change_policy(toolkit={"version": "v99"})

    ground.rounds(2)

    assert ground.plan.state == PlanState.PROMOTING, ground.plan.waiting_for


def test_somebody_elses_env_of_the_driver_halts_it(ground: Ground):
    """Z11."""
    armed(ground)
    ground.change_driver(env=[{"name": "A", "value": "secret"}])

    ground.rounds(2)

    assert ground.plan.state == PlanState.HALTED
    assert "spec.driver.env of ClusterPolicy cluster-policy was changed by somebody else" in ground.plan.reason


def test_a_wave_goes_and_the_rest_stays_held(ground: Ground):
    armed(ground)
    ground.round()

    released = ground.releases()
    assert len(released) == 1
    assert ground.target(released[0]).state in {TargetState.RELEASING, TargetState.RELEASED}
    assert ground.held() == gpu_nodes(ground) - set(released)


def test_the_version_goes_back_into_the_policy_and_every_hold_goes(ground: Ground):
    """Z5."""
    armed(ground)
    plan_control.halt(ground.plan, actor=ground.ada, reason="No.", now=ground.clock())
    ground.rounds(2)
    plan_control.roll_back(ground.plan, actor=ground.ada, reason="Back.", now=ground.clock())
    ground.rounds(4)
    assert ground.version() == OLD
    for name in gpu_nodes(ground):
        ground.set_state(name, "upgrade-done")
    ground.rounds(6)

    assert ground.plan.state == PlanState.ROLLED_BACK, ground.plan.waiting_for
    assert ground.held() == set()
    assert not Hold.objects.blocking_changes().exists()


def test_nvidiadrivers_that_nobody_serves_hold_nothing_up(ground: Ground):
    """Where the ClusterPolicy runs the driver there may be no such kind."""
    Bookmark.objects.filter(kind="nvidiadrivers.nvidia.com").delete()
    ground.start()

    ground.rounds(3)

    assert ground.plan.state == PlanState.PROMOTING, ground.plan.waiting_for
