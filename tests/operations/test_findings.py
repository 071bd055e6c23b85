"""The finding about an operation that waits for a person."""

import pytest

from fleet.models import Cluster
from operations import commands
from operations.findings import WAITING
from operations.lifecycle import OperationState
from operations.models import Operation
from tests.make import NOON, a_cluster, a_node, a_pool

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
