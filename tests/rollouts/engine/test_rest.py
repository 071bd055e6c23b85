"""A plan of the rest, in both driver modes: nothing is written; hold, let go in waves, and leave what is left held."""

from collections.abc import Callable, Iterator

import pytest

from fleet.models import Pod
from gpu.labels import HELD_BY, UPGRADE_SKIP
from rollouts.lifecycle import PlanState, TargetState
from rollouts.models import Hold, Plan, Target
from rollouts.steering import commands
from simulator.fleets.plan import Mode
from simulator.kinds import POD
from simulator.run import Simulation
from tests.make import NOON
from tests.rollouts.engine.ground import NEW, Ground, a_ground
from tests.simulator.wire.conftest import start  # noqa: F401 (fixture)

REVISION = "controller-revision-hash"
EARLIER = "earlier"


@pytest.fixture(params=[Mode.NVIDIA_DRIVER, Mode.CLUSTER_POLICY])
def ground(request, db: None, start: Callable[..., Simulation]) -> Iterator[Ground]:  # noqa: F811
    """All but two nodes run what the object asks for; a plan that is over holds those."""
    simulation = start()
    made = a_ground(simulation, request.param)
    made.write_version(NEW)
    made.look()
    made.late = sorted(node.name for node in the_nodes(made))[-2:]
    for node in the_nodes(made):
        if node.name in made.late:
            made.label(node.name, **{UPGRADE_SKIP: "true"})
            made.patch_node(node.name, {"metadata": {"annotations": {HELD_BY: "plan-4711"}}})
            made.set_state(node.name, "upgrade-required")
            revise(made, node.name, EARLIER)
        else:
            made.take_the_new_driver(node.name)
            made.set_state(node.name, "upgrade-done")
    made.look()
    made.start()
    made.writes()
    yield made
    made.connection.close()
    simulation.stop()


def the_nodes(ground: Ground):
    prefix = "" if ground.is_by_policy else "gpu-h100"
    return ground.cluster.nodes.filter(is_gpu_node=True, name__startswith=prefix)


def revise(ground: Ground, name: str, revision: str) -> None:
    """The node's driver pod is of another template."""
    pod = ground.driver_pod(name)
    ground.store.patch(POD, pod, {"metadata": {"labels": {REVISION: revision}}}, "gpu-operator", how="merge")
    Pod.objects.filter(cluster=ground.cluster, name=pod).update(revision_hash=revision)


def newest(ground: Ground) -> str:
    other = next(node for node in the_nodes(ground) if node.name not in ground.late)
    return Pod.objects.get(name=ground.driver_pod(other.name)).revision_hash


def change(ground: Ground, name: str) -> None:
    """The operator did its work."""
    revise(ground, name, newest(ground))
    ground.take_the_new_driver(name)
    ground.set_state(name, "upgrade-done")


def states(ground: Ground) -> dict[str, str]:
    rows = Target.objects.forward().filter(stage__plan=ground.plan)
    return dict(rows.values_list("node_name", "state"))


def test_it_takes_the_holds_over_and_writes_no_version(ground: Ground):
    plan, over = ground.plan, ground.draft()
    ground.plan = plan
    Plan.objects.filter(pk=over.pk).update(state="promoted")
    uid = ground.cluster.nodes.get(name=ground.late[0]).uid
    Hold.objects.create(plan=over, node_uid=uid, node_name=ground.late[0], wanted_since=NOON, placed_at=NOON,
                        ended_at=NOON)  # fmt: skip

    ground.rounds(2)

    patched = {one["path"].rsplit("/", 1)[-1] for one in ground.writes() if "/nodes/" in one["path"]}
    assert patched == set(ground.late)
    assert ground.plan.state == PlanState.PROMOTING, ground.plan.waiting_for
    for name in ground.late:
        assert ground.node(name)["metadata"]["annotations"][HELD_BY] == ground.plan.mark
    row = Hold.objects.get(plan=over)
    assert (row.is_wanted, row.placed_at) == (False, None)


def test_it_brings_them_forward_by_the_same_waves_and_gates(ground: Ground):
    ground.rounds(6)
    (first,) = ground.releases()
    assert states(ground)[first] in {TargetState.RELEASED, TargetState.RELEASING}
    assert not [one for one in ground.writes() if "clusterpolicies" in one["path"] or "drivers" in one["path"]]

    change(ground, first)
    ground.rounds(9)
    (second,) = ground.releases()
    assert {first, second} == set(ground.late)
    change(ground, second)
    ground.rounds(9)

    assert ground.plan.state == PlanState.PROMOTED, ground.plan.waiting_for
    assert ground.held() == set()
    assert not Hold.objects.filter(plan=ground.plan).in_the_way().exists()


def test_an_abort_leaves_the_rest_held(ground: Ground):
    """Let go, the operator would bring it the version with nobody watching."""
    ground.rounds(6)
    assert len(ground.releases()) == 1
    commands.abort(ground.plan, actor=ground.ada, because="Not today.", now=ground.clock())

    ground.rounds(4)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert ground.held() == set(ground.late)
    assert ground.version() == NEW
    left = f"{ground.late[0]}, {ground.late[1]} stay held with the driver there is: take the label off"
    assert left in ground.plan.because


def test_an_abort_before_anything_was_held_lets_nothing_go(ground: Ground):
    commands.abort(ground.plan, actor=ground.ada, because="Not today.", now=ground.clock())

    ground.rounds(4)

    assert ground.plan.state == PlanState.ABORTED, ground.plan.waiting_for
    assert ground.held() == set(ground.late)


def test_a_held_node_that_takes_it_is_an_escape(ground: Ground):
    """Z4."""
    ground.rounds(3)
    change(ground, ground.late[1])

    ground.rounds(2)

    assert ground.plan.state == PlanState.HALTED, ground.plan.waiting_for
    assert f"{ground.late[1]} took the new driver although held." in ground.plan.because


def test_somebody_elses_template_halts_it(ground: Ground):
    """Z11: there is no version of our own whose templates could be learned."""
    ground.rounds(3)
    ground.change_driver(env=[{"name": "A", "value": "b"}])

    ground.rounds(2)

    assert ground.plan.state == PlanState.HALTED, ground.plan.waiting_for
    assert "was changed by somebody else" in ground.plan.because


def test_another_version_halts_it(ground: Ground):
    """Z9."""
    ground.rounds(3)
    ground.write_version("550.54.15")

    ground.rounds(2)

    assert ground.plan.state == PlanState.HALTED, ground.plan.waiting_for
    assert ground.held() == set(ground.late)
