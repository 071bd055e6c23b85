"""Maintenance by NVSentinel: asked for by its own object, followed, and given back (lifecycle R14 to R16)."""

from datetime import timedelta
from typing import Any

import pytest

from fleet.models import Node
from gpu.labels import MAINTENANCE_OF, SENTINEL_CORDON, SENTINEL_STATE
from kube import client
from operations import commands
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Operation
from operations.steps import nvsentinel_maintenance
from operations.tasks import clean_up_operation
from simulator.actors.repairers import MAINTENANCE_REQUEST, lifecycle_definitions
from simulator.kinds import DEFINITION, NODE
from tests.make import a_user
from tests.operations.test_rounds import begin, is_cordoned, node, rounds, taken
from tests.pages import page, visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
SERVED = f"{MAINTENANCE_REQUEST.group}/{MAINTENANCE_REQUEST.version}"


@pytest.fixture
def sentinel(ground: Ground) -> Ground:
    for definition in lifecycle_definitions():
        ground.store.create(DEFINITION, definition)
    return ground


def requests(ground: Ground) -> list[dict[str, Any]]:
    return ground.store.list(MAINTENANCE_REQUEST)[0]


def emitted(ground: Ground, status: str = "True", **words: str) -> None:
    """The lifecycle-manager takes up the request, or says why not."""
    (made,) = requests(ground)
    at = (ground.clock() + timedelta(seconds=1)).isoformat()
    condition = {"type": "HealthEventEmitted", "status": status, "lastTransitionTime": at} | words
    given = {"status": {"conditions": [condition]}}
    ground.store.patch(MAINTENANCE_REQUEST, made["metadata"]["name"], given, how="merge", subresource="status")


def becomes(ground: Ground, state: str | None, *, is_out: bool = True) -> None:
    labels = {SENTINEL_STATE: state, SENTINEL_CORDON: "NVSentinel" if is_out else None}
    change = {"metadata": {"labels": labels}, "spec": {"unschedulable": is_out or None}}
    ground.store.patch(NODE, CANARY, change, how="merge")


def drained(ground: Ground) -> Operation:
    operation = rounds(ground, begin(ground, "start-maintenance", CANARY))
    emitted(ground)
    becomes(ground, "drain-succeeded")
    return rounds(ground, operation)


def test_nvsentinel_is_asked_followed_and_asked_to_give_back(sentinel: Ground):
    operation = rounds(sentinel, begin(sentinel, "start-maintenance", CANARY, reason="A new board."))

    (made,) = requests(sentinel)
    event = made["spec"]["healthEvent"]
    assert made["metadata"]["annotations"] == {MAINTENANCE_OF: f"{operation.mark}/{node(operation).node_uid}"}
    assert (event["nodeName"], event["recommendedAction"], event["isHealthy"]) == (CANARY, "NONE", False)
    assert event["message"] == "ada: A new board."
    assert node(operation).reason.startswith("NVSentinel has not taken up MaintenanceRequest")
    assert not is_cordoned(sentinel)  # Quarterdeck writes nothing to the node itself
    emitted(sentinel)
    becomes(sentinel, "draining")
    operation = rounds(sentinel, operation)
    assert node(operation).reason == "NVSentinel cordons and drains by its own settings (state draining)."
    assert taken() == [CANARY]

    becomes(sentinel, "drain-succeeded")
    operation = rounds(sentinel, operation)

    assert (node(operation).state, operation.state) == (NodeProgress.DONE, OperationState.FINISHED)
    assert len(requests(sentinel)) == 1
    back = rounds(sentinel, begin(sentinel, "end-maintenance", CANARY))
    assert (requests(sentinel), node(back).state) == ([], NodeProgress.RUNNING)
    back = rounds(sentinel, back)
    assert node(back).reason == "NVSentinel has not uncordoned the node yet."
    becomes(sentinel, None, is_out=False)
    back = rounds(sentinel, back)
    assert node(back).reason == "NVSentinel gave the node back. New pods may start here."


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"status": "False", "reason": "Blocked", "message": "Node is locked."}, "yet: Blocked: Node is locked."),
        ({"status": "True"}, "has not cordoned the node for 2 min"),
    ],
)
def test_it_says_what_nvsentinel_waits_for(sentinel: Ground, words: dict[str, str], says: str):
    operation = rounds(sentinel, begin(sentinel, "start-maintenance", CANARY))
    emitted(sentinel, **words)

    operation = rounds(sentinel, operation, 6)

    assert node(operation).state == NodeProgress.RUNNING
    assert says in node(operation).reason


def test_a_failed_drain_leaves_the_request_and_says_the_way_out(sentinel: Ground):
    operation = rounds(sentinel, begin(sentinel, "start-maintenance", CANARY))
    emitted(sentinel)
    becomes(sentinel, "drain-failed")

    operation = rounds(sentinel, operation)

    assert (node(operation).state, len(requests(sentinel))) == (NodeProgress.FAILED, 1)
    assert "End maintenance takes it back" in node(operation).reason


def test_a_cluster_without_the_kind_is_told_and_nothing_is_written(ground: Ground):
    operation = rounds(ground, begin(ground, "start-maintenance", CANARY))

    assert node(operation).reason == nvsentinel_maintenance.NOT_SERVED
    assert not is_cordoned(ground)


def test_a_cancel_takes_the_request_back(sentinel: Ground):
    operation = rounds(sentinel, begin(sentinel, "start-maintenance", CANARY))
    commands.cancel(operation, actor="ada", reason="Another node.", now=sentinel.clock())
    step = nvsentinel_maintenance.StartMaintenanceStep()
    assert step.left_behind() == [operation.pk]

    clean_up_operation(key=operation.pk)

    assert (requests(sentinel), step.left_behind()) == ([], [])


def test_a_cancel_that_comes_before_the_request_wins(sentinel: Ground, monkeypatch: pytest.MonkeyPatch):
    operation = begin(sentinel, "start-maintenance", CANARY)

    def cancelled(*given: Any) -> Any:
        commands.cancel(operation, actor="ben", reason="Not now.", now=sentinel.clock())
        return None

    monkeypatch.setattr(nvsentinel_maintenance, "_read", cancelled)
    rounds(sentinel, operation)

    assert requests(sentinel) == []


def test_a_request_of_somebody_else_is_left_alone(sentinel: Ground):
    drained(sentinel)
    (made,) = requests(sentinel)
    foreign = {"metadata": {"annotations": {MAINTENANCE_OF: "somebody"}}}
    sentinel.store.patch(MAINTENANCE_REQUEST, made["metadata"]["name"], foreign, how="merge")

    back = rounds(sentinel, begin(sentinel, "end-maintenance", CANARY))

    assert (node(back).state, len(requests(sentinel))) == (NodeProgress.FAILED, 1)


def test_a_killed_worker_asks_once(sentinel: Ground, monkeypatch: pytest.MonkeyPatch):
    operation = begin(sentinel, "start-maintenance", CANARY)
    truly = client.create_custom

    def dies(*given: Any) -> Any:
        truly(*given)
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_custom", dies)
        with pytest.raises(SystemExit):
            rounds(sentinel, operation)
    sentinel.clock.move(minutes=5)  # its lease is over

    operation = rounds(sentinel, operation)

    assert len(requests(sentinel)) == 1
    assert node(operation).state == NodeProgress.RUNNING


def test_the_page_of_a_node_with_nvsentinel_offers_it_with_its_impact(sentinel: Ground):
    row = Node.objects.get(name=CANARY)
    row.labels |= {"nvsentinel.dgxc.nvidia.com/driver.installed": "true"}
    row.save()
    browser = visiting(a_user("olivia", role="operator"))
    part = browser.get(f"/parts/nodes/{row.pk}/operations").content.decode()
    assert "Ask NVSentinel for maintenance" in part

    shown = page(browser, f"/operations/new?kind=start-maintenance&node={row.pk}").text

    assert "NVSentinel drains by its own settings" in shown
