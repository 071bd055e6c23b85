"""Where controllers, scheduler and operator are somebody else's, only what happens on nodes is played."""

from copy import deepcopy

from simulator.actors import apps
from simulator.actors.gpu_operator.kinds import NVIDIA_DRIVER
from simulator.actors.objects import is_true
from simulator.faults import Board
from simulator.fleets.small import small
from simulator.kinds import DAEMON_SET, POD
from tests.simulator.actors.stage import NEW, Stage

NODE_NAME = "gpu-h100-001"


def on_nodes_alone() -> Stage:
    return Stage.of(small(nodes=2), Board(), is_on_nodes_alone=True)


def test_nobody_plays_the_operator_or_a_controller():
    stage = on_nodes_alone()
    sets, pods = stage.store.list(DAEMON_SET)[0], len(stage.pods())

    stage.store.patch(NVIDIA_DRIVER, "h100", {"spec": {"version": NEW}}, how="merge")
    stage.store.delete(POD, stage.driver_pod(NODE_NAME)["metadata"]["name"], "gpu-operator")
    stage.run(600)

    assert stage.store.list(DAEMON_SET)[0] == sets
    assert len(stage.pods()) == pods - 1
    assert set(stage.states().values()) == {"upgrade-done"}


def test_what_somebody_binds_to_a_node_runs_there():
    stage = on_nodes_alone()
    (was,) = stage.pods(NODE_NAME, f"app={apps.DEVICE_PLUGIN}")
    stage.store.delete(POD, was["metadata"]["name"], "gpu-operator")
    stage.run(600)
    again = deepcopy(was) | {"status": {"phase": "Pending"}}
    again["metadata"] = {key: was["metadata"][key] for key in ("labels", "ownerReferences", "namespace")}
    again["metadata"]["name"] = "another"
    stage.store.create(POD, again, "gpu-operator")

    stage.until(lambda: is_true(stage.store.get(POD, "another", "gpu-operator"), "Ready"))
