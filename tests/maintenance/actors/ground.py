"""A drained node in a case, whose repair an actor is asked for."""

from typing import Any

from fleet.models import Node
from maintenance import commands
from maintenance.case_round import follow_cases
from maintenance.lifecycle import CaseState
from maintenance.models import NodeCase, Repair
from maintenance.repair_logs import collect_logs
from maintenance.repair_round import run_repair
from operations.models import OperationNode
from tests.make import a_case
from tests.operations.test_rounds import begin, end_pods, rounds
from tests.rollouts.engine.ground import CANARY, Ground


def a_drained_case(ground: Ground) -> NodeCase:
    """Returns the case of a node that an operation drained."""
    drain = rounds(ground, begin(ground, "drain", CANARY, options={"unmanaged": True, "empty_dir": True}))
    end_pods(ground)
    assert rounds(ground, drain, 3).state == "finished"
    Node.objects.filter(cluster=ground.cluster, name=CANARY).update(is_unschedulable=True, boot_id=boot_id(ground))
    return a_case(Node.objects.get(cluster=ground.cluster, name=CANARY), state="drained")


def boot_id(ground: Ground) -> str:
    return ground.node(CANARY)["status"]["nodeInfo"]["bootID"]


def asked(case: NodeCase, ground: Ground, by: str, *, has_logs: bool = True, **given: Any) -> Repair:
    """Returns the repair, after its log bundle ended unless `has_logs` is False."""
    given = {"kind": "reboot", "actor": "ada", "reason": "Reboot it.", "now": ground.clock()} | given
    commands.ask_repair(case, by=by, **given)
    repair = case.repairs.get(ended_at=None)
    if has_logs:
        collect_logs(repair, now=ground.clock())
        OperationNode.objects.of_kinds("logs").update(state="done")
    return repair


def repair_rounds(ground: Ground, repair: Repair, number: int = 1) -> Repair:
    for _ in range(number):
        ground.clock.move(seconds=10)
        run_repair(repair.pk, owner="worker", clock=ground.clock)
        follow_cases(now=ground.clock())
    return Repair.objects.select_related("case__cluster").get(pk=repair.pk)


def state(repair: Repair) -> CaseState:
    return CaseState(NodeCase.objects.get(pk=repair.case_id).state)
