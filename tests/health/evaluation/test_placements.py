"""Where pods and labels are placed badly: from rows to findings."""

from datetime import timedelta

import pytest

from fleet.models import Workload
from health.evaluation import evaluation_round
from health.evaluation.placements import split_gangs, taint_counts
from health.models import Finding
from health.rules.base import SplitGang, TaintCounts
from tests.health.evaluation.test_looking import reporting
from tests.make import NOON, a_node, a_pod

pytestmark = pytest.mark.django_db
CORDON = [{"key": "node.kubernetes.io/unschedulable", "value": "", "effect": "NoSchedule"}]
DOMAINS = ("a.1", "a.2")


def test_taints_are_counted_by_kind_of_node(cluster):
    a_node(cluster, taints=CORDON)
    a_node(cluster, gpus=0, is_gpu_node=False)

    assert taint_counts(cluster) == TaintCounts(gpu_nodes=2, untainted=1, cpu_nodes=1)


def test_a_job_in_two_domains_is_split_and_a_service_is_not(cluster):
    nodes = [a_node(cluster, f"gb-{at}", nvlink_domain=domain) for at, domain in enumerate(DOMAINS)]
    for node in nodes:
        a_pod(node, owner_kind="PyTorchJob", owner_name="train")
        a_pod(node, owner_kind="ReplicaSet", owner_name="chat")
    for at in range(2):
        a_pod(nodes[0], f"alone-{at}", owner_kind="Job", owner_name="alone")

    assert split_gangs(cluster) == (SplitGang("PyTorchJob team-a/train", 2, 2),)


def test_jobs_of_a_jobset_may_each_have_a_domain(cluster):
    for at, domain in enumerate(DOMAINS):
        node = a_node(cluster, f"gb-{at}", nvlink_domain=domain)
        above = {"owner_kind": "JobSet", "owner_name": "llama", "owner_uid": "s"}
        Workload.objects.create(cluster=cluster, uid=f"j{at}", kind="Job", namespace="team-a", name=f"llama-{at}",
                                created_at=NOON, changed_at=NOON, **above)  # fmt: skip
        a_pod(node, owner_kind="Job", owner_name=f"llama-{at}", owner_uid=f"j{at}")

    assert split_gangs(cluster) == ()


def test_each_becomes_a_finding(cluster):
    nodes = [a_node(cluster, f"gb-{at}", nvlink_domain=domain) for at, domain in enumerate(DOMAINS)]
    for node in nodes:
        a_pod(node, owner_kind="Job", owner_name="train")
    conflict = {"label": "gpu-type", "value": "a100", "reported": "NVIDIA-H200", "reporter": "nvidia.com/gpu.product"}
    a_node(cluster, "wrong", label_conflicts=[conflict])
    a_node(cluster, "full", cpu_allocatable_m=96_000, cpu_others_m=60_000)
    a_node(cluster, gpus=0, is_gpu_node=False)

    for minutes in (0, 61):
        reporting(cluster, NOON + timedelta(minutes=minutes))
        evaluation_round.evaluate_cluster(cluster, now=NOON + timedelta(minutes=minutes))

    found = set(Finding.objects.open().values_list("rule", "subject"))
    assert found >= {
        ("gang-across-domains", "placement of jobs"),
        ("gpu-nodes-untainted", "taints of GPU nodes"),
        ("labels-contradict", "node wrong"),
        ("cpu-pods-on-gpu-node", "node full"),
    }
