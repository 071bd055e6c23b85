"""Maintenance by NVSentinel: asked for by its own object, followed, and given back (lifecycle R14 to R16)."""

from datetime import timedelta
from typing import Any

import pytest

from fleet.models import Node
from gpu.labels import MAINTENANCE_OF, SENTINEL_CORDON, SENTINEL_STATE
from kube import client
from operations import commands
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Freeze, MaintenanceRequest, Operation
from operations.operation_round import clean_up_operation as clean_up
from operations.pool_shares import taken_by
from operations.steps import nvsentinel_maintenance
from simulator.actors.repairers import MAINTENANCE_REQUEST, lifecycle_definitions
from simulator.kinds import DEFINITION, NODE
from tests.make import a_user
from tests.operations.test_rounds import begin, is_cordoned, node, rounds, taken
from tests.pages import page, visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
STEP = nvsentinel_maintenance.StartMaintenanceStep()


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


def test_the_labels_of_a_cordon_that_somebody_removed_by_hand_hold_nothing_up(sentinel: Ground):
    drained(sentinel)
    back = rounds(sentinel, begin(sentinel, "end-maintenance", CANARY))
    becomes(sentinel, None)
    sentinel.patch_node(CANARY, {"spec": {"unschedulable": None}})
    back = rounds(sentinel, back)
    assert node(back).reason == "The node is uncordoned. NVSentinel's cordon labels are left behind."


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"status": "False", "reason": "Blocked", "message": "Node is locked."}, "yet: Blocked: Node is locked."),
        ({"status": "True"}, "took up the request 2 min ago and has not cordoned the node"),
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


def cancelled(ground: Ground) -> Operation:
    operation = rounds(ground, begin(ground, "start-maintenance", CANARY))
    commands.cancel(operation, actor="ada", reason="Another node.", now=ground.clock())
    return operation


def swept(ground: Ground, operation: Operation, times: int = 2) -> MaintenanceRequest:
    for _ in range(times):
        clean_up(operation.pk, clock=ground.clock)
    return MaintenanceRequest.objects.get(operation=operation)


def test_a_cancel_takes_the_request_back(sentinel: Ground):
    operation = cancelled(sentinel)
    assert STEP.left_behind() == [operation.pk]

    row = swept(sentinel, operation)

    assert row.gone_at is not None
    assert (requests(sentinel), STEP.left_behind()) == ([], [])


def test_a_cancel_under_a_stop_releases_nothing_and_says_so(sentinel: Ground):
    operation = cancelled(sentinel)
    now = sentinel.clock()
    Freeze.objects.create(by="bea", at=now, reason="Smoke.", is_stop=True, binds_rollbacks=True)

    row = swept(sentinel, operation)

    assert (len(requests(sentinel)), row.trouble) == (1, "The fleet is stopped by bea: Smoke.")
    assert STEP.left_behind() == [operation.pk]


def test_a_request_that_lands_after_the_cancel_is_taken_back(sentinel: Ground, monkeypatch: pytest.MonkeyPatch):
    operation = begin(sentinel, "start-maintenance", CANARY)
    truly = client.create_custom
    late = []

    def is_cancelled_meanwhile(*given: Any) -> Any:
        late.append(given)
        commands.cancel(operation, actor="ben", reason="Not now.", now=sentinel.clock())
        raise client.ClusterError("timed out")

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_custom", is_cancelled_meanwhile)
        rounds(sentinel, operation)
    assert swept(sentinel, operation).gone_at is None
    truly(*late[0])

    assert swept(sentinel, operation).gone_at is not None
    assert requests(sentinel) == []


def test_a_request_that_never_lands_is_not_waited_for_without_end(sentinel: Ground, monkeypatch: pytest.MonkeyPatch):
    operation = begin(sentinel, "start-maintenance", CANARY)

    def is_lost(*_given: Any) -> Any:
        raise client.ClusterError("timed out")

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_custom", is_lost)
        rounds(sentinel, operation)
    commands.cancel(operation, actor="ada", reason="No.", now=sentinel.clock())
    sentinel.clock.move(minutes=3)

    assert swept(sentinel, operation).gone_at is not None


def test_a_cancel_after_a_retry_takes_the_request_back(sentinel: Ground):
    operation = rounds(sentinel, begin(sentinel, "start-maintenance", CANARY))
    emitted(sentinel)
    becomes(sentinel, "drain-failed")
    operation = rounds(sentinel, operation)
    commands.retry(operation, actor="ada", reason="Again.", now=sentinel.clock())
    commands.cancel(Operation.objects.get(), actor="ada", reason="No.", now=sentinel.clock())

    assert swept(sentinel, operation).gone_at is not None


def test_a_state_of_an_earlier_fault_is_no_answer(sentinel: Ground):
    becomes(sentinel, "drain-failed", is_out=False)
    operation = rounds(sentinel, begin(sentinel, "start-maintenance", CANARY))
    emitted(sentinel)

    operation = rounds(sentinel, operation)
    assert node(operation).reason == "NVSentinel cordons and drains by its own settings (no state yet)."
    becomes(sentinel, "draining")
    rounds(sentinel, operation)
    becomes(sentinel, "drain-succeeded")

    assert node(rounds(sentinel, operation)).state == NodeProgress.DONE


def test_a_missing_right_is_named_with_what_to_apply(sentinel: Ground, monkeypatch: pytest.MonkeyPatch):
    def is_forbidden(*_given: Any) -> Any:
        raise client.Forbidden("No get on maintenancerequests.")

    monkeypatch.setattr(client, "get_custom", is_forbidden)

    operation = rounds(sentinel, begin(sentinel, "start-maintenance", CANARY))

    assert node(operation).reason == f"No get on maintenancerequests. {nvsentinel_maintenance.RIGHT}"


def test_a_request_of_somebody_else_is_left_alone(sentinel: Ground):
    drained(sentinel)
    (made,) = requests(sentinel)
    foreign = {"metadata": {"annotations": {MAINTENANCE_OF: "somebody"}}}
    sentinel.store.patch(MAINTENANCE_REQUEST, made["metadata"]["name"], foreign, how="merge")

    rounds(sentinel, begin(sentinel, "end-maintenance", CANARY))

    assert len(requests(sentinel)) == 1


def test_who_is_killed_after_the_deletion_goes_on(sentinel: Ground, monkeypatch: pytest.MonkeyPatch):
    drained(sentinel)
    back = begin(sentinel, "end-maintenance", CANARY)
    truly = client.delete_custom

    def dies(*given: Any) -> None:
        truly(*given)
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr(client, "delete_custom", dies)
        with pytest.raises(SystemExit):
            rounds(sentinel, back)
    becomes(sentinel, None, is_out=False)
    sentinel.clock.move(minutes=5)  # its lease is over

    back = rounds(sentinel, back, 2)

    assert node(back).reason == "NVSentinel gave the node back. New pods may start here."


def test_the_nodes_of_one_person_count_together(sentinel: Ground):
    """lifecycle R47: also those that NVSentinel took out of service for them."""
    drained(sentinel)

    assert taken_by("ada", sentinel.cluster, now=sentinel.clock()) == {Node.objects.get(name=CANARY).pk}
    assert taken_by("ben", sentinel.cluster, now=sentinel.clock()) == set()


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
