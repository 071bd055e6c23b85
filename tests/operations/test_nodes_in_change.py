"""The nodes of which free GPUs are in repair, not in quarantine."""

import pytest

from operations.ledger.disruptions import nodes_in_change
from operations.models import Disruption, OperationNode, Quarantine
from tests import make
from tests.make import NOON

pytestmark = pytest.mark.django_db


def test_nodes_of_running_operations_and_plans_are_changed_and_quarantined_ones_are_not():
    cluster = make.a_cluster("east")
    operation = make.an_operation(cluster, "resetting", "quarantined", "waiting")
    OperationNode.objects.filter(node_name="resetting").update(state="running")
    for name, ended in (("resetting", None), ("quarantined", None), ("upgrading", None), ("done", NOON)):
        Disruption.objects.create(
            cluster=cluster, taken_by="plan-7", node_uid=f"uid-of-{name}", node_name=name, taken_at=NOON, ended_at=ended
        )
    for name in ("resetting", "quarantined"):
        Quarantine.objects.create(
            cluster=cluster, operation=operation, node_uid=f"uid-of-{name}", node_name=name, wanted_since=NOON
        )

    assert nodes_in_change(cluster.pk) == {"resetting", "upgrading"}
    assert nodes_in_change(make.a_cluster("west").pk) == set()
