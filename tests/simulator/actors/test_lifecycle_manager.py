"""A MaintenanceRequest takes a node out of service, and its deletion gives it back."""

from simulator.actors.gpu_operator.release import Release
from simulator.actors.lifecycle_manager import CANCELLED, CORDON, EVENT, STATE
from simulator.actors.objects import annotations, condition, is_unschedulable, labels
from simulator.actors.repairers import MAINTENANCE_REQUEST, janitor_definitions, lifecycle_definitions
from simulator.faults import Board, Breakfix
from simulator.kinds import DEFINITION
from simulator.kinds import NODE as NODE_KIND
from tests.simulator.actors.stage import Stage, a_fleet

NODE = "gpu-h100-001"


def a_stage_with_sentinel() -> Stage:
    planted = a_fleet(2)
    for definition in (*janitor_definitions(), *lifecycle_definitions()):
        planted.store.create(DEFINITION, definition)
    return Stage(planted.store, planted.time, Board(), Release(), has_janitor=True)


def test_an_uncordon_cancels_the_session_and_the_node_stays_in_service():
    stage = a_stage_with_sentinel()
    stage.store.create(MAINTENANCE_REQUEST, {"metadata": {"name": "m"}, "spec": {"healthEvent": {"nodeName": NODE}}})
    stage.run(600)
    assert EVENT in annotations(stage.node(NODE))

    stage.store.patch(NODE_KIND, NODE, {"spec": {"unschedulable": None}}, how="merge")
    stage.run(600)

    node = stage.node(NODE)
    assert (annotations(node)[CANCELLED], EVENT in annotations(node)) == ("True", False)
    assert (STATE in labels(node), CORDON in labels(node), is_unschedulable(node)) == (False, True, False)


def test_a_fault_begins_a_session_that_ends_with_it_or_by_an_uncordon():
    stage = a_stage_with_sentinel()
    stage.faults.put(Breakfix(NODE))
    stage.run(60)
    node = stage.node(NODE)
    assert ('"errorCode": ["79"]' in annotations(node)[EVENT], is_unschedulable(node)) == (True, True)
    stage.faults.clear("breakfix")
    stage.run(60)
    assert (EVENT in annotations(stage.node(NODE)), is_unschedulable(stage.node(NODE))) == (False, False)

    stage.faults.put(Breakfix(NODE))
    stage.run(60)
    stage.store.patch(NODE_KIND, NODE, {"spec": {"unschedulable": None}}, how="merge")
    stage.run(60)
    assert annotations(stage.node(NODE))[CANCELLED] == "True"
    stage.store.patch(NODE_KIND, NODE, {"spec": {"unschedulable": True}}, how="merge")
    stage.faults.clear("breakfix")
    stage.run(60)
    assert is_unschedulable(stage.node(NODE)), "a cordon of somebody else"


def test_a_request_cordons_and_drains_and_its_deletion_gives_back():
    stage = a_stage_with_sentinel()
    asked = {"metadata": {"name": "m"}, "spec": {"healthEvent": {"nodeName": NODE}}}

    stage.store.create(MAINTENANCE_REQUEST, asked)
    stage.run(600)

    out = stage.node(NODE)
    assert condition(stage.store.get(MAINTENANCE_REQUEST, "m"), "HealthEventEmitted")["status"] == "True"
    assert (labels(out)[STATE], labels(out)[CORDON]) == ("drain-succeeded", "NVSentinel")
    assert out["spec"]["unschedulable"] is True
    stage.store.delete(MAINTENANCE_REQUEST, "m")
    stage.run(5)
    assert not {STATE, CORDON} & set(labels(stage.node(NODE)))
    assert "unschedulable" not in stage.node(NODE)["spec"]
    assert stage.store.list(MAINTENANCE_REQUEST)[0] == []
