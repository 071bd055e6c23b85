"""NodeResourceTopologies as node feature discovery writes them: docs/usage/nfd-topology-updater of its repository."""

import msgspec
import pytest

from fleet.observer.mirror.rows.topology import topology_row
from kube.structs.topology import NodeTopologySeen

ZONE = {
    "name": "node-0",
    "type": "Node",
    "costs": [{"name": "node-0", "value": 10}],
    "resources": [
        {"name": "cpu", "capacity": "32", "allocatable": "30", "available": "20"},
        {"name": "nvidia.com/gpu", "capacity": "4", "allocatable": "4", "available": "1"},
    ],
}


def a_row(zones: list, **rest):
    document = {"metadata": {"name": "gpu-1", "uid": "u"}, "zones": zones, **rest}
    return topology_row(msgspec.convert(document, NodeTopologySeen, strict=False))


def test_the_gpus_of_each_numa_node_and_the_policy_are_stored():
    attributes = [
        {"name": "topologyManagerPolicy", "value": "single-numa-node"},
        {"name": "topologyManagerScope", "value": "pod"},
    ]

    assert a_row([ZONE, {"name": "socket-0", "type": "Package"}], attributes=attributes) == {
        "name": "gpu-1",
        "policy": "single-numa-node",
        "zones": [{"name": "node-0", "allocatable": {"nvidia.com/gpu": 4}, "available": {"nvidia.com/gpu": 1}}],
    }


@pytest.mark.parametrize(
    ("written", "policy"),
    [
        ("SingleNUMANodePodLevel", "single-numa-node"), ("RestrictedContainerLevel", "restricted"), ("None", "none"),
        ("BestEffort", "best-effort"), ("balloons", ""),
    ],
)  # fmt: skip
def test_the_first_version_joins_policy_and_scope(written, policy):
    assert a_row([ZONE], topologyPolicies=[written])["policy"] == policy


@pytest.mark.parametrize("zones", [[], None, [{"name": "node-0", "type": "Node"}], [{**ZONE, "type": "Package"}]])
def test_a_node_without_gpus_in_numa_nodes_is_not_stored(zones):
    assert a_row(zones) is None


def test_quantities_that_cannot_be_read_are_none_in_use():
    gpus = [{"name": "nvidia.com/gpu", "allocatable": "4", "available": "many"}]

    (zone,) = a_row([{**ZONE, "resources": gpus}])["zones"]

    assert zone["available"] == {"nvidia.com/gpu": 4}
