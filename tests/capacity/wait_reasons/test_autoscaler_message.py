"""Reports of autoscalers about a pod, in the words of public threads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity.wait_reasons.autoscaler_message import read_report
from tests.capacity.wait_reasons.clusters import a_node, a_pod, explained
from wording.reports import LONGEST_SUMMARY

NOT_ADDED = "NotTriggerScaleUp"
NO_ROOM = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."


@pytest.mark.parametrize(
    ("words", "summary", "change"),
    [
        (
            "(it wouldn't fit if a new node is added): 1 in backoff after failed scale-up",
            "Back-off after a failed scale-up: 1 node group.", "Find why the cloud refused it",
        ),
        (
            (": 1 max node group size reached, 2 node(s) didn't match Pod's node affinity/selector, "
            "1 Insufficient nvidia.com/mig-1g.10gb"),
            "Maximum size reached: 1 node group. New nodes of 1 node group would lack nvidia.com/mig-1g.10gb.",
            "Raise the maximum of the node group that fits this pod.",
        ),
        (
            " (it wouldn't fit if a new node is added): 1 Insufficient nvidia.com/gpu, 1 Insufficient cpu",
            "New nodes of 1 node group would lack cpu.", "Request less cpu, or add a node group with larger nodes.",
        ),
        (
            (": 4 node(s) had taint {purpose: system}, that the pod didn't tolerate, 1 node(s) had "
            "taint {remediator.aks.microsoft.com/unschedulable: }, that the pod didn't tolerate, 1 max node group "
            "size reached"),
            "Under repair by AKS: 1 node group. Maximum size reached: 1 node group.",
            "Wait until AKS has repaired the node, or check the node pool in Azure.",
        ),
    ],
)  # fmt: skip
def test_the_cluster_autoscaler_says_why_it_adds_no_node(words, summary, change):
    report = read_report(NOT_ADDED, "cluster-autoscaler", f"pod didn't trigger scale-up{words}")

    assert (report.autoscaler, report.is_adding, report.summary) == ("Cluster autoscaler", False, summary)
    assert report.changes[0].text.startswith(change)


@pytest.mark.parametrize(
    ("message", "summary", "change"),
    [
        (
            ('Failed to schedule pod, incompatible with nodepool "spot-pool", daemonset overhead={"cpu":"1566m"}, no '
            'instance type has enough resources, resources={"cpu":"1566m","nvidia.com/gpu":"1","pods":"12"}; all '
            "available instance types exceed limits for nodepool (NodePool=gpu-nodepool)"),
            "NodePool gpu-nodepool has used up its limits. 1 other NodePool does not fit.",
            "Raise spec.limits of NodePool gpu-nodepool.",
        ),
        (
            ('incompatible with nodepool "gpu-g5", daemonset overhead={"cpu":"250m","pods":"6"}, no instance type '
            'satisfied resources {"cpu":"3250m","memory":"15510Mi","nvidia.com/gpu":"1","pods":"7"} and requirements '
            "karpenter.sh/nodepool In [gpu-g5] (no instance type which had enough resources)"),
            "NodePool gpu-g5 allows no instance type for cpu 3250m, memory 15510Mi, nvidia.com/gpu 1.",
            "Request less, or allow larger instance types in NodePool gpu-g5.",
        ),
        (
            'incompatible with nodepool "gpu", did not tolerate taint (taint=gpu=true:NoSchedule)',
            "NodePool gpu has the taint gpu=true:NoSchedule.", "",
        ),
    ],
)  # fmt: skip
def test_karpenter_names_the_nearest_node_pool(message, summary, change):
    report = read_report("FailedScheduling", "karpenter", message)

    assert (report.autoscaler, report.summary) == ("Karpenter", summary)
    assert [each.text for each in report.changes] == ([change] if change else [])


def test_a_node_that_comes_is_named():
    added = read_report("TriggeredScaleUp", "cluster-autoscaler", "pod triggered scale-up: [{gpu 0->1 (max: 3)}]")
    planned = read_report("Nominated", "karpenter", "Pod should schedule on: nodeclaim/gpu-x7")

    assert (added.is_adding, added.summary) == (True, "It has asked for nodes: {gpu 0->1 (max: 3)}.")
    assert (planned.is_adding, planned.summary) == (True, "It planned the pod on nodeclaim/gpu-x7.")


def test_a_scheduler_is_no_autoscaler():
    assert read_report("FailedScheduling", "default-scheduler", NO_ROOM) is None


@given(message=st.text(max_size=300), reason=st.sampled_from([NOT_ADDED, "FailedScheduling", "Nominated"]))
def test_whatever_it_says_the_summary_fits_a_line(message, reason):
    report = read_report(reason, "karpenter" if reason != NOT_ADDED else "cluster-autoscaler", message)

    assert report is None or len(report.summary) <= LONGEST_SUMMARY


def test_the_report_stands_beside_the_schedulers_reason():
    report = read_report(NOT_ADDED, "cluster-autoscaler", "pod didn't trigger scale-up: 1 max node group size reached")

    found = explained(a_pod(message=NO_ROOM), a_node("a", used=8), scaling=report)

    assert found.summary == "1 node qualifies. It has no free GPU."  # a report has its own time
    assert found.changes[-1].text == "Raise the maximum of the node group that fits this pod."
    assert found.scaling == report
