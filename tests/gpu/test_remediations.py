"""Work in flight on nodes, by the objects of remediators and machine controllers (lifecycle R18)."""

import pytest

from gpu.remediations import KINDS, RemediationObject


def read(kind: str, **given) -> list[tuple[str, str]]:
    seen = RemediationObject(**({"title": f"{kind} a/b", "name": "b"} | given))
    return [(node, f"{owner.name} {owner.does}") for node, owner in KINDS[kind].read(seen)]


@pytest.mark.parametrize(
    ("kind", "given", "work"),
    [
        ("NodeHealthCheck", {"nodes": ["n1", "n2"]},
         [("n1", "Node Health Check remediates the node"), ("n2", "Node Health Check remediates the node")]),
        ("SelfNodeRemediation", {"name": "n1"}, [("n1", "Self Node Remediation reboots the node")]),
        ("SelfNodeRemediation", {"conditions": {"Processing": "True"}},
         [("b", "Self Node Remediation reboots the node")]),
        ("FenceAgentsRemediation", {"annotations": {"remediation.medik8s.io/node-name": "n1"}},
         [("n1", "Fence Agents Remediation fences the node")]),
        ("Machine", {"node": "n1", "is_deleted": True}, [("n1", "Cluster API deletes the machine of the node")]),
        ("Machine", {"node": "n1", "annotations": {"cluster.x-k8s.io/remediate-machine": ""}},
         [("n1", "Cluster API remediates the machine of the node")]),
        ("Machine", {"node": "n1", "conditions": {"OwnerRemediated": "False"}},
         [("n1", "Cluster API remediates the machine of the node")]),
        ("Machine", {"node": "n1", "conditions": {"ExternallyRemediated": "False"}},
         [("n1", "Cluster API remediates the machine of the node")]),
        ("Machine", {"node": "n1", "conditions": {"Updating": "True"}},
         [("n1", "Cluster API updates the machine of the node")]),
    ],
)  # fmt: skip
def test_work_in_flight_names_its_node(kind: str, given, work):
    assert read(kind, **given) == work


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("NodeHealthCheck", {}),
        ("SelfNodeRemediation", {"conditions": {"Processing": "False", "Succeeded": "True"}}),
        ("FenceAgentsRemediation", {"conditions": {"Processing": "False", "Succeeded": "False"}}),
        ("Machine", {"is_deleted": True}),
        ("Machine", {"node": "n1", "conditions": {"HealthCheckSucceeded": "False", "Updating": "False"}}),
        ("Machine", {"node": "n1", "annotations": {"cluster.x-k8s.io/delete-machine": ""}}),
    ],
)
def test_an_object_without_work_in_flight_holds_no_node(kind: str, given):
    assert read(kind, **given) == []
