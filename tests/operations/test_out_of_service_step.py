"""The taint of a node whose power is off: confirmed by a person, and gone with the next boot (lifecycle R30)."""

from typing import Any

import pytest

from fleet.models import Node
from gpu.labels import OUT_OF_SERVICE, OUT_OF_SERVICE_BY
from kube import client
from operations import commands
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Freeze, Operation
from operations.operation_round import clean_up_operation, run_operation
from operations.refusals import BadOperation
from operations.steps.out_of_service import OutOfServiceStep
from people.models import AuditEntry
from people.rights import NotAllowed
from simulator.kinds import NODE
from tests.make import a_user
from tests.operations.test_rounds import a_pod, begin, is_cordoned, node, raises, rounds
from tests.pages import page, visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
OTHER = {"key": "gpu", "value": "yes", "effect": "NoSchedule", "timeAdded": "2026-11-30T12:00:00Z"}


def reports(ground: Ground, ready: str, boot_id: str = "first") -> None:
    status = {"conditions": [{"type": "Ready", "status": ready}], "nodeInfo": {"bootID": boot_id}}
    ground.store.patch(NODE, CANARY, {"status": status}, how="merge", subresource="status")
    Node.objects.filter(name=CANARY).update(is_ready={"True": True, "False": False, "Unknown": None}[ready])


@pytest.fixture
def off(ground: Ground) -> Ground:
    """A quarantined node whose kubelet is gone."""
    rounds(ground, begin(ground, "quarantine", CANARY))
    ground.patch_node(CANARY, {"spec": {"taints": [OTHER]}})
    reports(ground, "Unknown")
    return ground


def marked(ground: Ground, typed: str = CANARY) -> Operation:
    operation = begin(ground, "out-of-service", CANARY, options={"powered_off": typed})
    commands.approve(operation, actor="ben", reason="The rack has no power.", now=ground.clock())
    return operation


def taints(ground: Ground) -> list[dict[str, Any]]:
    return ground.node(CANARY)["spec"].get("taints", [])


def mark(ground: Ground) -> str | None:
    return ground.node(CANARY)["metadata"].get("annotations", {}).get(OUT_OF_SERVICE_BY)


def is_marked(ground: Ground) -> bool:
    return any(taint["key"] == OUT_OF_SERVICE for taint in taints(ground))


def test_the_taint_comes_with_a_person_s_word_and_goes_with_the_next_boot(off: Ground):
    a_pod(off, "web-1")
    operation = rounds(off, marked(off), 2)
    assert taints(off) == [OTHER, {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"}]
    assert mark(off) == f"{operation.mark} first"
    assert node(operation).reason.endswith("pods left. The taint goes when the node has booted.")
    entry = AuditEntry.objects.get(subject=operation.mark, verb="operation.start-out-of-service")
    assert entry.evidence["options"]["powered_off"] == CANARY

    reports(off, "Unknown", "second")
    rounds(off, operation)
    assert is_marked(off), "its kubelet does not report"
    reports(off, "False", "second")
    operation = rounds(off, operation)
    assert (taints(off), mark(off), is_cordoned(off)) == ([OTHER], None, True), "its network may wait for the removal"
    assert node(operation).reason == "The node booted. The taint is removed, and the cordon stays."


def test_another_person_approves_it(off: Ground):
    operation = rounds(off, begin(off, "out-of-service", CANARY, options={"powered_off": CANARY}))
    assert (operation.state, is_marked(off)) == (OperationState.PROPOSED, False)
    with pytest.raises(NotAllowed):
        commands.approve(operation, actor="ada", reason="Mine.", now=off.clock())


def test_a_refused_removal_is_tried_again(off: Ground, monkeypatch: pytest.MonkeyPatch):
    operation = rounds(off, marked(off), 2)
    reports(off, "True", "second")
    with monkeypatch.context() as patched:
        patched.setattr(client, "patch_node", raises(client.Conflict("It changed.")))
        row = node(rounds(off, operation))
    assert (row.state, is_marked(off)) == (NodeProgress.RUNNING, True)
    assert row.reason == f"The taint is not removed yet: {CANARY} changed during each attempt to write it."
    rounds(off, operation)
    assert not is_marked(off)


def test_a_failed_node_loses_the_taint_once_it_has_booted(off: Ground):
    operation = rounds(off, marked(off), 2)
    operation.nodes.update(state=NodeProgress.FAILED, reason="It failed in an earlier version.")
    assert OutOfServiceStep().left_behind() == []
    for boot in ("first", "second"):
        reports(off, "False", boot)
        assert OutOfServiceStep().left_behind() == [operation.pk]
        clean_up_operation(operation.pk, clock=off.clock)
        assert is_marked(off) is (boot == "first")
    assert OutOfServiceStep().left_behind() == []


def test_a_freeze_holds_back_the_taint_and_not_its_removal(off: Ground):
    operation = marked(off)
    freeze = Freeze.objects.create(by="ben", at=off.clock(), reason="Audit.", cluster=off.cluster)
    rounds(off, operation)
    assert (node(operation).state, is_marked(off)) == (NodeProgress.PENDING, False)
    freeze.delete()
    rounds(off, operation, 2)
    Freeze.objects.create(by="ben", at=off.clock(), reason="Audit.", cluster=off.cluster)
    reports(off, "True", "second")
    assert (node(rounds(off, operation)).state, is_marked(off)) == (NodeProgress.DONE, False)


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_stop_holds_back_the_removal(off: Ground, is_cancelled: bool):
    operation = rounds(off, marked(off), 2)
    stop = Freeze.objects.create(by="ben", at=off.clock(), reason="Incident.", is_stop=True, binds_rollbacks=True)
    reports(off, "True", "second")
    if is_cancelled:
        commands.cancel(operation, actor="bob", reason="Its power is on.", now=off.clock())
    for is_stopped in (True, False):
        if is_cancelled:
            clean_up_operation(operation.pk, clock=off.clock)
        else:
            rounds(off, operation)
        assert is_marked(off) is is_stopped
        assert ("Incident." in node(operation).reason) is is_stopped
        Freeze.objects.filter(pk=stop.pk).delete()


def test_a_mark_that_lands_after_the_cancel_is_removed(off: Ground, monkeypatch: pytest.MonkeyPatch):
    operation = marked(off)
    sent = []
    with monkeypatch.context() as patched:
        patched.setattr(client, "patch_node", lambda *args: sent.append(args) or raises(client.Unreachable("Late."))())
        rounds(off, operation)
    operation.refresh_from_db()
    commands.cancel(operation, actor="bob", reason="Its power is on.", now=off.clock())
    clean_up_operation(operation.pk, clock=off.clock)
    assert OutOfServiceStep().left_behind() == [operation.pk]
    client.patch_node(off.connection, *sent[0][1:])
    clean_up_operation(operation.pk, clock=off.clock)
    assert (is_marked(off), OutOfServiceStep().left_behind()) == (False, [])


def test_a_cancelled_node_that_was_never_marked_is_forgotten(off: Ground):
    operation = marked(off)
    commands.cancel(operation, actor="bob", reason="No.", now=off.clock())
    off.clock.move(minutes=3)
    clean_up_operation(operation.pk, clock=off.clock)
    assert (node(operation).reason, OutOfServiceStep().left_behind()) == ("Cancelled by bob.", [])


def test_a_node_that_comes_back_without_a_boot_keeps_the_taint_and_says_so(off: Ground):
    operation = rounds(off, marked(off), 2)
    reports(off, "True")
    row = node(rounds(off, operation))
    assert (row.state, is_marked(off)) == (NodeProgress.RUNNING, True)
    assert row.reason.startswith("Ready again with the boot ID of before: the power was not off.")


def test_a_cancel_removes_the_taint(off: Ground):
    operation = rounds(off, marked(off), 2)
    commands.cancel(operation, actor="bob", reason="Its power is on.", now=off.clock())
    assert OutOfServiceStep().left_behind() == [operation.pk]
    clean_up_operation(operation.pk, clock=off.clock)
    assert (taints(off), mark(off)) == ([OTHER], None)
    assert OutOfServiceStep().left_behind() == []


def test_a_cancelled_node_that_left_is_cleaned_up(off: Ground):
    operation = rounds(off, marked(off), 2)
    commands.cancel(operation, actor="bob", reason="It is gone.", now=off.clock())
    off.delete(CANARY)
    clean_up_operation(operation.pk, clock=off.clock)
    assert OutOfServiceStep().left_behind() == []


@pytest.mark.parametrize("typed", ["", "gpu-h100-001", "yes"])
def test_nobody_marks_a_node_without_typing_its_name(off: Ground, typed: str):
    with pytest.raises(BadOperation, match="Check that the power is off, then type the name"):
        marked(off, typed)


@pytest.mark.parametrize("ready", ["True", "False"])
def test_a_kubelet_that_reports_has_power(off: Ground, ready: str):
    reports(off, ready)
    with pytest.raises(BadOperation, match=f"The kubelet of {CANARY} reports, so the power is on"):
        marked(off)
    Node.objects.filter(name=CANARY).update(is_ready=None)  # an old row
    operation = rounds(off, marked(off))
    assert (node(operation).state, is_marked(off)) == (NodeProgress.FAILED, False)
    assert node(operation).reason == f"The kubelet reports Ready={ready}, so the power is on."


def test_a_node_without_a_cordon_is_not_marked(ground: Ground):
    reports(ground, "Unknown")
    operation = rounds(ground, marked(ground))
    assert "Quarantine it first" in node(operation).reason
    assert not is_marked(ground)


def test_a_taint_of_somebody_else_stays(off: Ground):
    off.patch_node(CANARY, {"spec": {"taints": [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]}})
    operation = rounds(off, marked(off))
    assert node(operation).reason == "Another client has marked the node out of service. Quarterdeck leaves that taint."
    assert (is_marked(off), mark(off)) == (True, None)


def test_a_taint_that_somebody_removed_is_not_written_again(off: Ground):
    operation = rounds(off, marked(off), 2)
    off.patch_node(CANARY, {"spec": {"taints": [OTHER]}})
    operation = rounds(off, operation)
    assert (node(operation).state, mark(off), is_marked(off)) == (NodeProgress.DONE, None, False)


def test_a_taint_without_its_mark_is_named_as_ours(off: Ground):
    operation = rounds(off, marked(off), 2)
    off.patch_node(CANARY, {"metadata": {"annotations": {OUT_OF_SERVICE_BY: None}}})
    row = node(rounds(off, operation))
    assert (row.state, is_marked(off)) == (NodeProgress.FAILED, True)
    assert row.reason.startswith("Somebody removed Quarterdeck's mark and left the taint.")


@pytest.mark.parametrize(("by", "phase"), [("cancel", "mark"), ("freeze", "mark"), ("cancel", "unmark")])
def test_the_taint_is_neither_written_nor_removed_once_it_is_forbidden(
    off: Ground, monkeypatch: pytest.MonkeyPatch, by: str, phase: str
):
    operation = marked(off)
    if phase == "unmark":
        rounds(off, operation)
        reports(off, "True", "second")
    really = client.get_node
    reads: list[str] = []

    def read(connection, name):
        reads.append(name)
        if len(reads) == 1:  # the read before the write
            if by == "cancel":
                commands.cancel(Operation.objects.get(pk=operation.pk), actor="bob", reason="No.", now=off.clock())
            else:
                Freeze.objects.create(by="ben", at=off.clock(), reason="Audit.", cluster=off.cluster)
        return really(connection, name)

    with monkeypatch.context() as patched:
        patched.setattr(client, "get_node", read)
        run_operation(operation.pk, owner="worker", clock=off.clock)
    assert reads
    assert is_marked(off) is (phase == "unmark")


def test_the_page_of_a_silent_node_offers_it(off: Ground):
    person = visiting(a_user("oscar", role="operator"))
    there = Node.objects.get(name=CANARY)
    assert "Mark out of service" in page(person, f"/parts/nodes/{there.pk}/operations").text
    reports(off, "True")
    assert "Mark out of service" not in page(person, f"/parts/nodes/{there.pk}/operations").text
    reports(off, "Unknown")
    form = page(person, f"/operations/new?kind=out-of-service&node={there.pk}").text
    assert "With the power on, two pods may write to one volume." in form
