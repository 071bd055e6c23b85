"""Cancel of NVSentinel's break-fix: of the events that a person saw, and no cordon but NVSentinel's (lifecycle R2)."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from fleet.models import Node
from gpu.labels import CORDONED_BY, SENTINEL_CORDON, SENTINEL_STATE
from operations import commands
from operations.impact import impact_of
from operations.kinds import KINDS
from operations.lifecycle import NodeProgress
from operations.models import Disruption, ExternalWork, Freeze, MaintenanceRequest, Operation, Quarantine
from operations.operation_round import OperationRound
from operations.refusals import BadOperation, OperationRefused
from operations.steps.cancel_breakfix import CancelBreakfixStep
from tests.make import a_user
from tests.operations.test_rounds import begin, is_cordoned, node, rounds
from tests.rollouts.engine.ground import CANARY, REST, Ground

pytestmark = pytest.mark.django_db
KIND = "cancel-breakfix"
XID = {"checkName": "SysLogsXIDError", "errorCode": ["79"], "nodeName": CANARY, "isFatal": True}
SESSION = ("quarantineHealthEvent", "quarantineHealthEventIsCordoned", "quarantineHealthEventAppliedTaints")


def sentinel_takes(ground: Ground, *events: dict[str, Any], name: str = CANARY, **more: str) -> None:
    """NVSentinel's fault-quarantine begins a session, or adds an event to it."""
    annotations = {SESSION[0]: json.dumps(events), SESSION[1]: "True"} | more
    labels = {SENTINEL_STATE: "draining", SENTINEL_CORDON: "NVSentinel"}
    marks = {"annotations": annotations, "labels": labels}
    ground.patch_node(name, {"metadata": marks, "spec": {"unschedulable": True}})
    ground.look()


def sentinel_records(ground: Ground) -> None:
    ended = {**dict.fromkeys(SESSION), "quarantinedNodeUncordonedManually": "True"}
    ground.patch_node(CANARY, {"metadata": {"annotations": ended, "labels": {SENTINEL_STATE: None}}})


def preview(ground: Ground, name: str = CANARY) -> str:
    node = Node.objects.get(cluster=ground.cluster, name=name)
    return commands.preview(ground.cluster, KIND, [node], actor="ada", now=ground.clock()).sentence


def cancel(ground: Ground, name: str = CANARY, **given: Any) -> Operation:
    return begin(ground, KIND, name, **({"seen": preview(ground, name)} | given))


def result(operation: Operation) -> tuple[str, str]:
    row = node(operation)
    return row.state, row.reason


def test_a_cancel_uncordons_and_is_done_once_nvsentinel_recorded_it(ground: Ground):
    sentinel_takes(ground, XID)
    operation = rounds(ground, cancel(ground))

    assert not is_cordoned(ground)
    assert result(operation) == ("running", "Uncordoned. NVSentinel records the cancel next.")
    assert result(rounds(ground, operation))[1] == "Uncordoned. NVSentinel has not recorded the cancel yet."
    sentinel_records(ground)
    assert result(rounds(ground, operation)) == ("done", "NVSentinel ended its break-fix. New pods may start here.")
    assert not Disruption.objects.in_force().exists()


def test_what_nvsentinel_leaves_or_does_again_is_said(ground: Ground):
    taints = {SESSION[2]: json.dumps([{"Key": "nvidia.com/gpu-error", "Effect": "NoSchedule"}])}
    sentinel_takes(ground, XID, **taints)
    ground.patch_node(CANARY, {"spec": {"taints": [{"key": "nvidia.com/gpu-error", "effect": "NoSchedule"}]}})
    operation = rounds(ground, cancel(ground))
    sentinel_records(ground)
    assert result(rounds(ground, operation))[1].endswith(f"kubectl taint node {CANARY} nvidia.com/gpu-error-")

    sentinel_takes(ground, XID)
    operation = rounds(ground, cancel(ground))
    sentinel_takes(ground, XID | {"errorCode": ["95"]})
    state, reason = result(rounds(ground, operation))
    assert (state, reason.startswith("Uncordoned, and cordoned again")) == ("failed", True)


def test_a_silent_nvsentinel_is_not_waited_for_without_end(ground: Ground):
    sentinel_takes(ground, XID)
    operation = rounds(ground, cancel(ground))
    ground.clock.move(seconds=timedelta(minutes=5).total_seconds())

    state, reason = result(rounds(ground, operation))
    assert (state, "Check its fault-quarantine" in reason) == ("failed", True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"annotations": {SESSION[0]: json.dumps([XID, XID | {"errorCode": ["95"]}])}}, "events changed since you saw"),
        ({"annotations": {SESSION[0]: None}}, "NVSentinel does not quarantine the node. It is cordoned"),
        ({"annotations": {SESSION[1]: None}}, "NVSentinel does not quarantine the node. It is cordoned"),
        ({"annotations": {"nvsentinel.nvidia.com/validation-session": "x"}}, "NVSentinel validates the node"),
        ({"annotations": {CORDONED_BY: "plan-7"}}, "Cordoned before NVSentinel's event by plan-7."),
        ({"annotations": {"quarantineHealthEventCordonPreExisting": "True"}}, "Somebody cordoned the node before"),
        ({"annotations": {"weave.works/kured-reboot-in-progress": "now"}}, "Held by another: Kured reboots the node"),
    ],
)
def test_a_cordon_that_is_not_nvsentinels_alone_stays(ground: Ground, change: dict[str, Any], why: str):
    sentinel_takes(ground, XID)
    operation = cancel(ground)
    ground.patch_node(CANARY, {"metadata": change})

    state, reason = result(rounds(ground, operation))
    assert (state, is_cordoned(ground)) == ("failed", True)
    assert why in reason


def test_events_that_came_after_the_preview_are_not_cancelled(ground: Ground):
    sentinel_takes(ground, XID)
    seen = preview(ground)
    sentinel_takes(ground, XID, XID | {"errorCode": ["95"]})

    with pytest.raises(
        OperationRefused, match=r"The impact changed since you saw it\. It is now: .* Events: 2 \(digest"
    ):
        cancel(ground, seen=seen)
    with pytest.raises(BadOperation, match="Read the preview"):
        cancel(ground, seen="")
    assert not Operation.objects.exists()


def test_a_repeated_key_returns_the_cancel_whatever_nvsentinel_wrote_since(ground: Ground):
    sentinel_takes(ground, XID)
    seen = preview(ground)
    operation = rounds(ground, cancel(ground, seen=seen, key="k1"))
    sentinel_records(ground)
    ground.look()

    assert cancel(ground, seen=seen, key="k1") == operation
    with pytest.raises(OperationRefused, match="already used"):
        cancel(ground, seen=seen, key="k1", reason="Another.")


def test_events_too_long_for_a_row_are_not_cancelled(ground: Ground):
    sentinel_takes(ground, XID | {"message": "x" * 16_384})

    assert "events are too long to compare" in result(rounds(ground, cancel(ground)))[1]
    assert is_cordoned(ground)


def test_it_waits_for_a_change_of_the_driver(ground: Ground):
    sentinel_takes(ground, XID)
    ground.set_state(CANARY, "pod-restart-required")
    operation = rounds(ground, cancel(ground))
    assert result(operation) == ("running", "The GPU Operator is changing the driver (pod-restart-required).")
    assert is_cordoned(ground)

    ground.set_state(CANARY, "upgrade-done")
    rounds(ground, operation)
    assert not is_cordoned(ground)


def test_it_waits_for_another_controller_that_has_no_mark_on_the_node(ground: Ground):
    sentinel_takes(ground, XID)
    work = {CANARY: ["Cluster API", "deletes the machine of the node", "Machine a/b"]}
    ExternalWork.objects.create(cluster=ground.cluster, by_node=work, looked_at=ground.clock())
    operation = rounds(ground, cancel(ground))

    held = "by another: Cluster API deletes the machine of the node (Machine a/b)."
    assert result(operation)[0] == "pending"
    assert result(operation)[1].startswith(f"Held {held}")
    assert any(each.startswith(f"{CANARY} is held {held}") for each in operation.preview["warnings"])
    assert is_cordoned(ground)


def test_a_node_that_nvsentinel_only_tainted_is_not_changed(ground: Ground):
    marks = {SESSION[0]: json.dumps([XID])}
    ground.patch_node(CANARY, {"metadata": {"annotations": marks}})
    ground.look()

    assert result(rounds(ground, cancel(ground))) == (
        "failed", "NVSentinel did not cordon the node: an uncordon cancels nothing.",
    )  # fmt: skip


def test_maintenance_that_quarterdeck_asked_for_is_ended_by_its_request(ground: Ground):
    sentinel_takes(ground, XID)
    operation = cancel(ground)
    row = node(operation)
    MaintenanceRequest.objects.create(
        cluster=ground.cluster, operation=operation, node_uid=row.node_uid, node_name=CANARY, intended_at=ground.clock()
    )

    assert "End maintenance releases the node." in result(rounds(ground, operation))[1]
    assert is_cordoned(ground)


def test_a_worker_that_dies_after_the_write_goes_on(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    sentinel_takes(ground, XID)
    operation = cancel(ground)
    with monkeypatch.context() as patched:
        patched.setattr(OperationRound, "_record", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rounds(ground, operation)
    assert not is_cordoned(ground)

    operation = rounds(ground, operation, 2)
    assert node(operation).state == NodeProgress.RUNNING
    sentinel_records(ground)
    assert node(rounds(ground, operation)).state == NodeProgress.DONE


def test_a_stop_that_comes_before_the_write_keeps_the_cordon(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    sentinel_takes(ground, XID)
    operation, guard = cancel(ground), OperationRound._guard

    def restrained(*given: Any) -> None:
        Freeze.objects.create(by="ada", reason="Demo.", at=ground.clock(), is_stop=True, binds_rollbacks=True)
        guard(*given)

    monkeypatch.setattr(OperationRound, "_guard", restrained)
    rounds(ground, operation)
    assert is_cordoned(ground)


def test_it_ends_a_quarantine_of_ours_and_only_where_a_release_may(ground: Ground, monkeypatch: pytest.MonkeyPatch):
    """lifecycle R39: no way around the validation of a case."""
    rounds(ground, begin(ground, "quarantine", CANARY))
    sentinel_takes(ground, XID, quarantineHealthEventCordonPreExisting="True")
    sentinel_takes(ground, XID, name=REST[0])
    with monkeypatch.context() as patched:
        vetoed = "operations.steps.cancel_breakfix.release_vetoes"
        patched.setattr(vetoed, lambda uids: dict.fromkeys(uids, "No validation has passed."))
        with pytest.raises(OperationRefused, match="No validation has passed"):
            cancel(ground)
        cancel(ground, REST[0])  # Quarterdeck does not keep it

    operation = rounds(ground, cancel(ground))
    assert (is_cordoned(ground), Quarantine.objects.in_force().exists()) == (False, False)
    assert CORDONED_BY not in ground.node(CANARY)["metadata"]["annotations"]
    sentinel_records(ground)
    assert node(rounds(ground, operation)).state == NodeProgress.DONE


def test_the_preview_names_the_events_and_what_does_not_come_back(ground: Ground):
    sentinel_takes(ground, XID)
    nodes = list(Node.objects.filter(name__in=(CANARY, REST[0])).order_by("name"))

    impact = impact_of(ground.cluster, nodes, KINDS[KIND].steps, actor="ada", now=ground.clock())
    said = " ".join(impact.warnings)
    assert "The same event does not cordon the node again." in said
    assert f"{CANARY}: NVSentinel cordoned it for SysLogsXIDError (79)." in said
    assert f"{REST[0]}: the cancel fails. NVSentinel does not quarantine the node." in said
    assert "NVSentinel's cordon, drain and repair end." in impact.sentence


def test_the_page_of_a_node_offers_it_for_nvsentinels_cordon_alone(ground: Ground, client: Any):
    client.force_login(a_user(role="operator"))
    where = reverse("node-operations", args=[Node.objects.get(name=CANARY).pk])
    assert "kind=cancel-breakfix" not in str(client.get(where).content)
    sentinel_takes(ground, XID)
    said = str(client.get(where).content)
    assert "kind=cancel-breakfix" in said
    assert "kind=start-maintenance" not in said, "it is at work there"
    ground.patch_node(CANARY, {"spec": {"unschedulable": None}})
    ground.look()
    assert "kind=start-maintenance" in str(client.get(where).content)


def test_the_page_of_a_node_in_our_own_maintenance_offers_its_end_alone(ground: Ground, client: Any):
    """The cancel would fail: NVSentinel's cordon is for Quarterdeck's request."""
    client.force_login(a_user(role="operator"))
    row = Node.objects.get(name=CANARY)
    started = begin(ground, "start-maintenance", CANARY)
    MaintenanceRequest.objects.create(
        cluster=ground.cluster, operation=started, node_uid=row.uid, node_name=CANARY, intended_at=ground.clock()
    )
    sentinel_takes(ground, XID)

    said = str(client.get(reverse("node-operations", args=[row.pk])).content)
    assert ("kind=cancel-breakfix" in said, "kind=end-maintenance" in said) == (False, True)
    row.refresh_from_db()
    why = CancelBreakfixStep().why_not_offered([row])[row.uid]
    assert why.startswith(f"Operation {started.pk} asked NVSentinel for the maintenance.")


def test_the_form_refuses_events_that_it_did_not_show(ground: Ground, client: Any):
    client.force_login(a_user(role="operator"))
    sentinel_takes(ground, XID)
    form = {"kind": KIND, "node": Node.objects.get(name=CANARY).pk, "reason": "A false alarm.", "seen": preview(ground)}
    sentinel_takes(ground, XID, XID | {"errorCode": ["95"]})

    assert client.post(reverse("new-operation"), form).status_code == 409
    assert not Operation.objects.exists()
    assert client.post(reverse("new-operation"), form | {"seen": preview(ground)}).status_code == 302
