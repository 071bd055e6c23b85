"""The nodes of a plan as the API server lists them, with what only rows know beside."""

import pytest

from fleet.allocation.devices import read_slices
from fleet.models import Node
from rollouts.engine.live_state import Live, NodesNow
from rollouts.engine.nodes import from_cluster
from rollouts.engine.workloads import DriverPod
from tests import make
from tests.fleet.documents import a_node_seen

pytestmark = pytest.mark.django_db
LIVE = Live(object_version="580.95.05", hashes={}, unsettled=(), stopped_reason="")


def test_the_driver_that_only_a_dra_driver_names_is_known_of_a_node_that_is_listed():
    """No label names it there. As unknown, it would be held again by each look at the API server, and let go by each
    look at rows: a plan that was given up never ended."""
    plan = make.a_plan()
    node = Node.objects.order_by("pk").first()
    devices = [{"name": "gpu-0", "type": "gpu", "uuid": "GPU-1", "driver_version": "580.95.05"}]
    told = {"driver": "gpu.nvidia.com", "pool": node.name, "pool_generation": 1, "node_name": node.name}
    told |= {"pool_slices": 1, "cluster__server_version": "v1.36.4"}
    listed = a_node_seen(node.name, uid=node.uid, labels={"nvidia.com/gpu.present": "true"})
    offered = read_slices([told | {"devices": devices}])
    seen = NodesNow((listed,), {}, {node.name: DriverPod("uid-of-daemonset", "hash")}, offered)

    (found,) = from_cluster(plan, LIVE, seen, {}).selected

    assert found.driver_version == "580.95.05"
