"""Repairs through controllers in the cluster: NVSentinel's janitor and Metal3, found by discovery."""

from typing import Any

import pytest

from fleet.models import Gpu, Node
from gpu.labels import SENTINEL_STATE, UPGRADE_STATE
from kube import client
from maintenance import commands, repair_logs, tasks
from maintenance.automatic import ACTOR, other_quarantine
from maintenance.case_round import follow_cases
from maintenance.lifecycle import CaseState
from maintenance.models import NodeCase, Repair
from maintenance.queries import offers_of
from maintenance.refusals import CaseRefused
from maintenance.repair_kinds import discover
from maintenance.repair_logs import LATE, WAIT_FOR_LOGS, collect_logs_for_people
from operations import external_work
from operations.models import OperationNode
from simulator.actors.repairers import (
    BARE_METAL_HOST,
    GPU_RESET,
    NODE_HEALTH_CHECK,
    REBOOT_NODE,
    janitor_definitions,
    metal3_definitions,
    remediation_definitions,
)
from simulator.kinds import CONFIG_MAP, DEFINITION, NAMESPACE, NODE
from tests.maintenance.actors.ground import a_drained_case, asked, repair_rounds, state
from tests.make import a_case, a_node, a_user
from tests.pages import page, visiting
from tests.rollouts.engine.ground import CANARY, Ground

pytestmark = pytest.mark.django_db
SENT = {"type": "SignalSent", "status": "True", "reason": "Succeeded", "message": "req-7"}
READY = {"type": "NodeReady", "status": "True", "reason": "Succeeded", "message": ""}
TIMEOUT = {"type": "NodeReady", "status": "False", "reason": "Timeout", "message": "25 min"}
MANUAL = {"type": "ManualMode", "status": "True", "reason": "OutsideActorRequired", "message": ""}


@pytest.fixture
def case(ground: Ground) -> NodeCase:
    for definition in (*janitor_definitions(), *metal3_definitions()):
        ground.store.create(DEFINITION, definition)
    discover(ground.cluster.pk, now=ground.clock())
    return a_drained_case(ground)


def objects(ground: Ground, kind=REBOOT_NODE) -> list[dict[str, Any]]:
    return ground.store.list(kind)[0]


def ends(ground: Ground, *conditions: dict[str, Any], kind=REBOOT_NODE, is_over: bool = True) -> None:
    """The janitor answers."""
    (made,) = objects(ground, kind)
    given = [each | {"lastTransitionTime": "2026-11-29T12:00:00Z"} for each in conditions]
    status = {"conditions": given} | ({"completionTime": "2026-11-29T12:00:00Z"} if is_over else {})
    ground.store.patch(kind, made["metadata"]["name"], {"status": status}, how="merge", subresource="status")


def boots(ground: Ground, case: NodeCase, boot_id: str) -> None:
    info = {"status": {"nodeInfo": {"bootID": boot_id}}}
    ground.store.patch(NODE, CANARY, info, how="merge", subresource="status")
    Node.objects.filter(uid=case.node_uid).update(boot_id=boot_id)


def test_a_reboot_node_is_made_once_with_our_mark_and_is_done_by_the_boot_id(ground: Ground, case):
    """lifecycle R6: what NVSentinel reports proves nothing."""
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot"), 3)
    (made,) = objects(ground)
    assert made["spec"] == {"nodeName": CANARY, "force": False}
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "quarterdeck"}
    assert made["metadata"]["annotations"] == {"quarterdeck.io/repair-request": repair.request}
    assert repair.accepted_at is not None
    ends(ground, SENT, READY)
    repair = repair_rounds(ground, repair)
    assert (repair.answer, state(repair)) == ("done", CaseState.IN_REPAIR)
    boots(ground, case, "second")
    follow_cases(now=ground.clock())
    assert state(repair) == CaseState.VALIDATING
    repair_rounds(ground, repair)
    assert len(objects(ground)) == 1, "an ended request is history"


def test_a_reboot_waits_for_a_remediation_that_is_in_flight_now(ground: Ground, case):
    """lifecycle R18: the objects of others are listed before each request."""
    for definition in remediation_definitions():
        ground.store.create(DEFINITION, definition)
    ground.store.create(NODE_HEALTH_CHECK, {"metadata": {"name": "workers"}})
    status = {"unhealthyNodes": [{"name": CANARY, "remediations": [{"started": "2026-11-30T12:00:00Z"}]}]}
    ground.store.patch(NODE_HEALTH_CHECK, "workers", {"status": status}, how="merge", subresource="status")
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot"), 2)
    assert repair.says.startswith("Node Health Check remediates the node (NodeHealthCheck workers).")
    assert (repair.sent_at, objects(ground)) == (None, [])

    ground.store.delete(NODE_HEALTH_CHECK, "workers")
    repair_rounds(ground, repair)
    assert len(objects(ground)) == 1


@pytest.mark.parametrize("actor", ["ada", ACTOR])
def test_a_repair_is_sent_despite_unknown_work_of_others_for_people_alone(
    ground: Ground, case, actor: str, monkeypatch
):
    """lifecycle R18: a kind that may not be listed is no "nothing found"."""
    for definition in remediation_definitions():
        ground.store.create(DEFINITION, definition)
    really = client.list_pages

    def listed(connection, resource, **given):
        if resource.title == "Machine":
            raise client.Forbidden("machines.cluster.x-k8s.io is forbidden.")
        return really(connection, resource, **given)

    monkeypatch.setattr(external_work.client, "list_pages", listed)
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot", actor=actor), 2)
    why = "Machines were not checked: Quarterdeck may not list them."
    if actor == ACTOR:
        assert (objects(ground), repair.answer, state(repair)) == ([], "refused", CaseState.DRAINED)
        assert repair.answer_note == f"Not sent: {why} A person decides."
    else:
        assert len(objects(ground)) == 1
        assert [(entry.actor, entry.reason) for entry in case.moves.filter(verb="case.not-looked")] == [("ada", why)]


def test_the_logs_are_collected_before_a_reboot_and_are_not_waited_for_long(ground: Ground, case):
    """lifecycle R13."""
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot", has_logs=False))
    (bundle,) = OperationNode.objects.of_kinds("logs")
    assert (bundle.node_name, bundle.operation.asked_by) == (CANARY, "ada")
    assert (repair.says, repair.sent_at, objects(ground)) == ("The logs of the node are collected first.", None, [])

    ground.clock.move(minutes=6)
    assert repair_rounds(ground, repair, 2).sent_at is not None
    assert len(objects(ground)) == 1
    (bundle,) = OperationNode.objects.of_kinds("logs")
    assert (bundle.state, bundle.operation.state) == ("cancelled", "cancelled"), "its log would be from after"
    assert [entry.reason for entry in case.moves.filter(verb="case.no-logs")] == [LATE]


@pytest.mark.parametrize(("ended", "is_sent"), [("running", False), ("done", True), ("failed", True)])
def test_a_repair_goes_on_once_its_logs_ended(ground: Ground, case, ended: str, is_sent: bool):
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot", has_logs=False))
    OperationNode.objects.of_kinds("logs").update(state=ended)
    assert (repair_rounds(ground, repair).sent_at is not None) is is_sent


def test_without_an_image_the_case_says_why_there_are_no_logs(ground: Ground, case, settings):
    settings.TEST_IMAGES = {}
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot", has_logs=False), 2)
    assert repair.sent_at is not None
    assert case.moves.filter(verb="case.no-logs").count() == 1
    text = page(visiting(a_user("vera", role="viewer")), f"/cases/{case.pk}").text
    assert "none. Neither the pool's images of tests nor QUARTERDECK_TEST_IMAGES names logs or debug." in text


@pytest.mark.parametrize(("kind", "bundles"), [("reboot", 1), ("hardware", 1), ("other", 0)])
def test_the_logs_are_collected_once_before_a_person_repairs(ground: Ground, case, kind: str, bundles: int):
    repair = asked(case, ground, "person", kind=kind, has_logs=False)
    said = WAIT_FOR_LOGS if bundles else ""
    assert repair.says == said
    for _ in range(2):
        collect_logs_for_people(now=ground.clock())
    repair.refresh_from_db()
    assert (OperationNode.objects.of_kinds("logs").count(), repair.says) == (bundles, said)

    OperationNode.objects.of_kinds("logs").update(state="done")
    ground.clock.move(minutes=6)  # also then
    collect_logs_for_people(now=ground.clock())
    repair.refresh_from_db()
    assert repair.says == ""


@pytest.mark.parametrize("is_ended", [True, False])
def test_logs_that_come_after_the_reboot_of_a_person_are_cancelled(ground: Ground, case, is_ended: bool):
    asked(case, ground, "person", has_logs=False)
    collect_logs_for_people(now=ground.clock())
    if is_ended:
        case.refresh_from_db()
        commands.answer_repair(case, answer="done", actor="ada", reason="Rebooted.", now=ground.clock())
        Repair.objects.update(ended_at=ground.clock())
    else:
        ground.clock.move(minutes=6)
    collect_logs_for_people(now=ground.clock())
    assert OperationNode.objects.of_kinds("logs").get().state == "cancelled"
    assert case.moves.filter(verb="case.no-logs").count() == 1


def test_a_failure_of_one_repairs_logs_stops_no_other_repair(ground: Ground, case, monkeypatch):
    first = asked(case, ground, "person", has_logs=False)
    others = [a_case(a_node(ground.cluster, name, boot_id="x"), state="drained") for name in ("gpu-b", "gpu-c")]
    second = asked(others[0], ground, "person", has_logs=False)
    due = asked(others[1], ground, "nvsentinel-reboot", has_logs=False)
    started, queued = [], []

    def start(repair, *, now):
        if repair == first:
            raise RuntimeError("broken")
        started.append(repair)
        return ""

    monkeypatch.setattr(repair_logs, "_start", start)
    monkeypatch.setattr(Repair, "queue_round", queued.append)
    monkeypatch.setattr(tasks, "queue_discoveries", lambda **_: None)
    monkeypatch.setattr(tasks.timezone, "now", ground.clock)
    tasks.sweep_cases()
    assert (started, queued) == ([second], [due.pk])


@pytest.mark.parametrize(("conditions", "answer"), [((SENT, TIMEOUT), "unclear"), ((), "unclear")])
def test_an_end_without_ready_is_unclear_and_a_second_reboot_is_the_last(ground: Ground, case, conditions, answer):
    """lifecycle R7, R8."""
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot"))
    ends(ground, *conditions)
    repair = repair_rounds(ground, repair, 2)
    assert (repair.answer, state(repair), len(objects(ground))) == (answer, CaseState.DRAINED, 1)
    asked(NodeCase.objects.get(pk=case.pk), ground, "nvsentinel-reboot")
    commands.answer_repair(
        NodeCase.objects.get(pk=case.pk), answer="unclear", actor="bob", reason="x", now=ground.clock()
    )
    with pytest.raises(CaseRefused, match="Two reboots did not mend the node"):
        asked(NodeCase.objects.get(pk=case.pk), ground, "nvsentinel-reboot")


def test_manual_mode_is_a_task_and_a_repair_that_ends_takes_its_request_back(ground: Ground, case):
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot"))
    ends(ground, MANUAL, is_over=False)
    assert "Reboot the node by hand." in repair_rounds(ground, repair).says
    commands.retire(NodeCase.objects.get(pk=case.pk), actor="ada", reason="Sent back.", now=ground.clock())
    repair = repair_rounds(ground, repair)

    assert objects(ground) == []
    assert repair.withdrawn_at is not None


def test_a_foreign_object_of_our_name_and_a_refused_one_change_nothing(ground: Ground, case, monkeypatch):
    repair = asked(case, ground, "nvsentinel-reboot")
    metadata = {"name": f"quarterdeck-case-{case.pk}-{repair.request[:8]}"}
    ground.store.create(REBOOT_NODE, {"metadata": metadata, "spec": {"nodeName": "x", "force": True}})
    repair = repair_rounds(ground, repair)
    assert "has another owner" in repair.answer_note
    assert len(objects(ground)) == 1, "it is not ours to delete"

    def refused(*_, **__):
        raise client.Refused("admission webhook: an unfinished RebootNode exists for the node")

    monkeypatch.setattr(client, "create_custom", refused)
    repair = repair_rounds(ground, asked(NodeCase.objects.get(pk=case.pk), ground, "nvsentinel-reboot"))
    assert (repair.answer, state(repair)) == ("refused", CaseState.DRAINED)
    assert "an unfinished RebootNode exists" in repair.answer_note


def test_a_worker_killed_between_intent_and_act_makes_the_object_later_once(ground: Ground, case, monkeypatch):
    repair = asked(case, ground, "nvsentinel-reboot")

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(client, "create_custom", killed)
        with pytest.raises(KeyboardInterrupt):
            repair_rounds(ground, repair)
    assert objects(ground) == []
    ground.clock.move(minutes=2)
    repair_rounds(ground, repair, 2)
    assert len(objects(ground)) == 1


@pytest.mark.parametrize("why", ["stop", "remade", "rebooted", "nvsentinel", "upgrade"])
def test_no_object_is_made_for_another_node_or_against_a_stop(ground: Ground, case, why):
    repair = asked(case, ground, "nvsentinel-reboot")
    if why == "stop":
        ground.stop_everything("Fire.")
    elif why == "nvsentinel":
        ground.label(CANARY, **{SENTINEL_STATE: "remediating"})
    elif why == "upgrade":
        ground.label(CANARY, **{UPGRADE_STATE: "pod-restart-required"})
    elif why == "rebooted":
        info = {"status": {"nodeInfo": {"bootID": "second"}}}
        ground.store.patch(NODE, CANARY, info, how="merge", subresource="status")
    else:
        node = ground.node(CANARY)
        ground.delete(CANARY)
        ground.store.seed(NODE, node | {"metadata": {"name": CANARY, "uid": "uid-of-another"}})

    assert repair_rounds(ground, repair).says
    assert objects(ground) == []
    if why == "stop":
        ground.store.delete(CONFIG_MAP, "quarterdeck-stop", "quarterdeck", grace_s=0)
        repair_rounds(ground, repair)
        assert len(objects(ground)) == 1


def test_an_object_that_somebody_deleted_is_unclear_and_not_made_again(ground: Ground, case):
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-reboot"))
    ground.store.delete(REBOOT_NODE, objects(ground)[0]["metadata"]["name"], grace_s=0)
    repair = repair_rounds(ground, repair, 2)

    assert (repair.answer, objects(ground)) == ("unclear", [])


def test_a_gpu_reset_names_every_gpu_and_is_not_asked_without_one(ground: Ground, case):
    """R44: an empty selector means all."""
    repair = repair_rounds(ground, asked(case, ground, "nvsentinel-gpu-reset", kind="gpu-reset"))
    assert "UUIDs of the node's GPUs are unknown" in repair.says
    assert objects(ground, GPU_RESET) == []
    node = Node.objects.get(uid=case.node_uid)
    Gpu.objects.update_or_create(node=node, index=0, defaults={"uuid": "GPU-0"})
    repair = repair_rounds(ground, repair)
    (made,) = objects(ground, GPU_RESET)
    assert made["spec"]["selector"]["uuids"] == ["GPU-0"]
    ends(ground, {"type": "Complete", "status": "True", "reason": "Succeeded", "message": ""}, kind=GPU_RESET)

    assert state(repair_rounds(ground, repair)) == CaseState.VALIDATING


def test_metal3_is_asked_once_by_an_annotation_that_is_taken_back(ground: Ground, case):
    ground.store.create(NAMESPACE, {"metadata": {"name": "metal3"}})
    ground.store.patch(NODE, CANARY, {"spec": {"providerID": "metal3://metal3/host-3/machine-3"}}, how="merge")
    host = {"metadata": {"name": "host-3", "annotations": {"a": "b"}}, "spec": {"online": True}}
    ground.store.create(BARE_METAL_HOST, host, "metal3")

    def annotations() -> dict[str, str]:
        return ground.store.get(BARE_METAL_HOST, "host-3", "metal3")["metadata"]["annotations"]

    repair = repair_rounds(ground, asked(case, ground, "metal3-reboot", deadline_h=1))
    assert annotations()["reboot.metal3.io"] == f'{{"mode": "soft", "by": "quarterdeck/case-{case.pk}"}}'
    ground.store.patch(
        BARE_METAL_HOST, "host-3", {"metadata": {"annotations": {"reboot.metal3.io": None}}}, "metal3", how="merge"
    )
    assert "has no request any more" in repair_rounds(ground, repair, 2).says
    assert annotations() == {"a": "b"}, "it is not asked twice"
    ground.clock.move(minutes=61)
    assert state(repair_rounds(ground, repair)) == CaseState.DRAINED

    again = repair_rounds(ground, asked(NodeCase.objects.get(pk=case.pk), ground, "metal3-reboot"))
    assert "reboot.metal3.io" in annotations()
    commands.answer_repair(
        NodeCase.objects.get(pk=case.pk), answer="refused", actor="bob", reason="No.", now=ground.clock()
    )
    repair_rounds(ground, again)
    assert annotations() == {"a": "b"}


def test_where_the_cluster_serves_no_such_kind_the_reason_is_shown(ground: Ground):
    case = a_drained_case(ground)
    reasons = {actor.key: reason for actor, reason in offers_of(case)}
    assert reasons["nvsentinel-reboot"] == "Quarterdeck has not looked for RebootNode in this cluster yet."
    discover(ground.cluster.pk, now=ground.clock())

    reasons = {actor.key: reason for actor, reason in offers_of(case)}
    assert reasons["nvsentinel-reboot"] == "The cluster serves no RebootNode."
    assert reasons["metal3-reboot"] == "The cluster serves no BareMetalHost."
    assert reasons["person"] == ""
    assert other_quarantine(ground.cluster) == ""
    with pytest.raises(CaseRefused, match=r"The cluster serves no RebootNode\."):
        asked(case, ground, "nvsentinel-reboot")
