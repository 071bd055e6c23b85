"""The finding about an operation that waits for a person."""

from datetime import timedelta

import pytest

from fleet.models import Cluster
from operations import commands
from operations.findings import STALLED, WAITING
from operations.kinds import KINDS
from operations.lifecycle import NodeProgress, OperationState
from operations.models import Operation
from operations.steps.out_of_service import POWERED
from tests.make import NOON, a_cluster, a_node, a_pool, an_operation

pytestmark = pytest.mark.django_db


def a_proposal() -> Operation:
    pool = a_pool(a_cluster(mode="operate"), "h100", environment="production")
    nodes = [a_node(pool.cluster, f"gpu-{number}", pool=pool) for number in range(10)][:3]
    return commands.start(pool.cluster, "drain", nodes, actor="ada", reason="Xid 79.", typed_count=3, now=NOON)


def said(cluster: Cluster) -> list[tuple[str, str]]:
    return [(problem.title, problem.summary) for _, problem in WAITING.say(cluster, now=NOON)]


def test_a_proposal_waits_until_it_is_approved_or_cancelled():
    operation = a_proposal()
    title = "Drain of 3 nodes waits for a person"

    assert said(operation.cluster) == [(title, "Another person has to approve it. Nothing is written before.")]
    ((_, problem),) = WAITING.say(operation.cluster, now=NOON)
    assert WAITING.page(problem.facts) == f"/operations/{operation.pk}"
    commands.cancel(operation, actor="ada", reason="Not needed.", now=NOON)
    assert said(operation.cluster) == []


def test_a_paused_operation_says_why():
    operation = a_proposal()
    commands.approve(operation, actor="bea", reason="Fine.", now=NOON)
    assert said(operation.cluster) == []

    operation.move(OperationState.PAUSED, now=NOON, reason="1 node of 3 failed.")

    assert said(operation.cluster) == [("Drain of 3 nodes waits for a person", "1 node of 3 failed.")]


@pytest.mark.parametrize(
    ("kind", "columns", "after", "said"),
    [
        ("drain", {"state": NodeProgress.PENDING, "progress": {"held_since": NOON.isoformat()}}, 4, "Held by CAPI."),
        ("drain", {"state": NodeProgress.PENDING, "progress": {}}, None, ""),
        ("out-of-service", {"state": NodeProgress.RUNNING, "step_since": NOON}, 24, "Held by CAPI."),
        ("out-of-service", {"state": NodeProgress.RUNNING, "progress": {"trouble": POWERED}}, 0, POWERED),
        ("out-of-service", {"state": NodeProgress.FAILED, "progress": {"trouble": POWERED}}, None, ""),
    ],
)
def test_an_operation_whose_node_waits_too_long_is_stalled(kind: str, columns: dict, after: int | None, said: str):
    node = a_node(a_cluster(), "gpu-0")
    operation = an_operation(node.cluster, node.name, steps=KINDS[kind].steps)
    operation.nodes.update(reason="Held by CAPI.", **columns)

    def stalled(hours: float) -> list[str]:
        found = list(STALLED.say(node.cluster, now=NOON + timedelta(hours=hours)))
        assert all(STALLED.page(problem.facts) == f"/operations/{operation.pk}" for _, problem in found)
        return [problem.summary for _, problem in found]

    assert stalled(1000) == ([said] if said else [])
    if after is not None:
        assert stalled(after) == [said]
    if after:
        assert stalled(after - 0.01) == []
