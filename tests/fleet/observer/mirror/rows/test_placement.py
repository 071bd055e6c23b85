"""What a pod without a node asks of its node, from the bytes of an API server."""

import json
from typing import Any

import msgspec
import pytest

from fleet.models import Pod
from fleet.observer.mirror.rows.placement import AFFINITY_AT_MOST, MESSAGE_AT_MOST, exclusions_of, placement_of
from fleet.observer.mirror.rows.pod import pod_row
from fleet.observer.mirror.validation import why_invalid
from kube.structs import PodSeen
from tests.fleet.documents import pod_document

UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    "lastTransitionTime": "2026-11-21T08:00:00Z",
}


APART = {
    "topologyKey": "host", "labelSelector": {"matchLabels": {"app": "train"}}, "namespaces": ["a"],
    "namespaceSelector": {},
}  # fmt: skip
STORED_APART = {
    "key": "host", "selector": {"matchLabels": {"app": "train"}}, "namespaces": ["a"], "namespace_selector": {},
}  # fmt: skip


def a_waiting_pod(*, status: Any = (), phase: str = "Pending", **spec: Any) -> PodSeen:
    document = pod_document("train-0", phase=phase)
    document["spec"] = {"containers": [{"name": "main"}]} | spec
    document["status"] |= {"conditions": [UNSCHEDULABLE]} | dict(status)
    return msgspec.json.decode(json.dumps(document), type=PodSeen, strict=False)


def test_a_waiting_pod_keeps_what_it_asks_of_its_node():
    in_zone = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [in_zone]}},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]},
    }
    seen = a_waiting_pod(
        nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H200"},
        affinity=affinity,
        tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        topologySpreadConstraints=[
            {
                "topologyKey": "rack",
                "maxSkew": 2,
                "whenUnsatisfiable": "DoNotSchedule",
                "minDomains": 3,
                "labelSelector": {"matchLabels": {"app": "train"}},
                "nodeAffinityPolicy": "Ignore",
                "nodeTaintsPolicy": "Honor",
                "matchLabelKeys": ["pod-template-hash"],
            },
            {"topologyKey": "row", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"},
        ],
        schedulingGates=[{"name": "kueue.x-k8s.io/admission"}],
        schedulingGroup={"podGroupName": "pretrain"},
        schedulerName="volcano",
        priority=1000,
        preemptionPolicy="Never",
        volumes=[
            {"name": "data", "persistentVolumeClaim": {"claimName": "datasets"}},
            {"name": "scratch", "ephemeral": {}},
        ],
        containers=[{"name": "main", "ports": [{"containerPort": 80}, {"containerPort": 1, "hostPort": 8080}]}],
        initContainers=[
            {"name": "once", "ports": [{"hostPort": 90}]},
            {"name": "sidecar", "restartPolicy": "Always", "ports": [{"hostPort": 91, "protocol": "UDP"}]},
        ],
        status={"nominatedNodeName": "gpu-3"},
    )

    assert placement_of(seen) == {
        "scheduler": "volcano",
        "priority": 1000,
        "preemption_policy": "Never",
        "nominated_node": "gpu-3",
        "gates": ["kueue.x-k8s.io/admission"],
        "pod_group": "pretrain",
        "node_selector": {"nvidia.com/gpu.product": "NVIDIA-H200"},
        "node_affinity": [[{"key": "zone", "operator": "In", "values": ["a", "b"]}]],
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "value": "", "effect": "NoSchedule"}],
        "spread": [
            {
                "key": "rack", "max_skew": 2, "selector": {"matchLabels": {"app": "train"}}, "min_domains": 3,
                "ignores_affinity": True, "honors_taints": True, "match_label_keys": ["pod-template-hash"],
            }
        ],
        "pod_anti_affinity": [STORED_APART],
        "host_ports": ["8080/TCP", "91/UDP"],
        "volume_claims": ["datasets", "train-0-scratch"],
        "conditions": [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
                "at": "2026-11-21T08:00:00+00:00",
            }
        ],
    }  # fmt: skip


def test_a_plain_pod_keeps_its_scheduler():
    assert placement_of(a_waiting_pod(status={"conditions": []})) == {"scheduler": "default-scheduler"}


@pytest.mark.parametrize("given", [{"nodeName": "gpu-1"}, {"phase": "Succeeded"}])
def test_a_pod_that_does_not_wait_for_a_node_keeps_nothing(given):
    assert placement_of(a_waiting_pod(nodeSelector={"a": "b"}, **given)) == {}


def test_a_pod_on_a_node_keeps_what_keeps_others_away():
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}
    ports = [{"hostPort": 9400, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "::"}]
    spec = {"affinity": {"podAntiAffinity": required}, "containers": [{"name": "main", "ports": ports}]}

    assert exclusions_of(a_waiting_pod(nodeName="gpu-1", **spec)) == {
        "anti_affinity": [STORED_APART], "host_ports": ["10.0.0.1:9400/TCP", "80/TCP"],
    }  # fmt: skip
    assert exclusions_of(a_waiting_pod(**spec)) is None
    assert exclusions_of(a_waiting_pod(nodeName="gpu-1", phase="Succeeded", **spec)) is None
    assert exclusions_of(a_waiting_pod(nodeName="gpu-1", affinity={"podAntiAffinity": [1]})) == {"unread": ["affinity"]}
    assert exclusions_of(a_waiting_pod(nodeName="gpu-1", affinity={"nodeAffinity": {}})) is None


@pytest.mark.parametrize(
    ("part", "value", "name"),
    [
        ("affinity", {"nodeAffinity": "near"}, "affinity"),
        ("tolerations", {"key": "a"}, "tolerations"),
        ("nodeSelector", {"a": 1}, "node_selector"),
        ("schedulingGates", ["gate"], "gates"),
        ("topologySpreadConstraints", [1], "spread"),
    ],
)
def test_a_part_that_cannot_be_decoded_is_named_and_costs_only_itself(part, value, name):
    seen = a_waiting_pod(priority=7, **{part: value})

    assert placement_of(seen)["unread"] == [name]
    assert placement_of(seen)["priority"] == 7


@pytest.mark.parametrize("part", ["affinity", "tolerations", "nodeSelector", "schedulingGates"])
def test_null_is_absent(part):
    assert "unread" not in placement_of(a_waiting_pod(**{part: None}))


def with_terms(*terms: Any) -> PodSeen:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return a_waiting_pod(affinity={"nodeAffinity": required})


def test_two_hundred_affinity_terms_are_kept():
    term = {"matchExpressions": [{"key": "rack", "operator": "NotIn", "values": ["r1"]}]}

    found = placement_of(with_terms(*[term] * 200))

    assert len(found["node_affinity"]) == 200
    assert "unread" not in found


def test_an_affinity_that_is_cut_counts_as_unread():
    term = {"matchExpressions": [{"key": "rack", "operator": "In", "values": ["r1"]}]}

    assert placement_of(with_terms(*[term] * 1000))["unread"] == ["affinity"]


def test_no_affinity_and_no_message_is_too_large_for_a_row():
    values = [f"node-{number:05}-{'x' * 40}" for number in range(5000)]
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]}
    seen = with_terms(*[term] * 20)
    row = pod_row(msgspec.structs.replace(seen))

    assert row["placement"]["unread"] == ["affinity"]
    assert row["placement"].get("node_affinity") is None
    assert len(json.dumps(row["placement"])) < AFFINITY_AT_MOST + MESSAGE_AT_MOST + 1000
    assert not why_invalid(Pod, row)


def test_nul_does_not_reach_the_row():
    conditions = [UNSCHEDULABLE | {"message": "a\0b" * 9000}]
    seen = a_waiting_pod(schedulerName="a\0b", nodeSelector={"a\0": "b\0"}, status={"conditions": conditions})

    assert not why_invalid(Pod, pod_row(seen))
