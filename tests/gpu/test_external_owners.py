"""Who else works on a node, by its marks (lifecycle R18)."""

import pytest

from gpu.external_owners import NodeMarks, external_owner


def marks(**given) -> NodeMarks:
    return NodeMarks(**({"labels": {}, "annotations": {}, "taints": ()} | given))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"labels": {"dgxc.nvidia.com/nvsentinel-state": "remediating"}}, "NVSentinel"),
        ({"annotations": {"weave.works/kured-reboot-in-progress": "2026-11-29T22:00:00Z"}}, "Kured"),
        ({"taints": {"karpenter.sh/disrupted"}}, "Karpenter"),
        ({"taints": {"ToBeDeletedByClusterAutoscaler"}}, "The Cluster Autoscaler"),
        ({"taints": {"medik8s.io/drain"}}, "The Node Maintenance Operator"),
        (
            {"annotations": {"machineconfiguration.openshift.io/state": "Working"}},
            "OpenShift's Machine Config Operator",
        ),
        (
            {"annotations": {"machineconfiguration.openshift.io/state": "Rebooting"}},
            "OpenShift's Machine Config Operator",
        ),
        ({"annotations": {"nodeset.slinky.slurm.net/node-cordon-reason": "maintenance"}}, "Slurm (Slinky)"),
        ({"conditions": {"MaintenanceInProgress": "FirmwareUpdate"}}, "Another client"),
        ({"conditions": {"DrainInProgress": "KubectlDrainStarted"}}, "Another client"),
    ],
)
def test_each_owner_has_its_mark(given, name: str):
    found = external_owner(marks(**given))

    assert found is not None
    assert found.name == name
    assert found.sentence.startswith(f"{name} ")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"labels": {"dgxc.nvidia.com/nvsentinel-state": "quarantined"}},
        {"annotations": {"weave.works/kured-most-recent-reboot-needed": "2026-11-29T22:00:00Z"}},
        {"annotations": {"machineconfiguration.openshift.io/state": "Done"}},
        {"annotations": {"machineconfiguration.openshift.io/state": "Degraded"}},
        {"annotations": {"machineconfiguration.openshift.io/state": "Unreconcilable"}},
        {"taints": {"DeletionCandidateOfClusterAutoscaler", "node.kubernetes.io/unschedulable"}},
        {"conditions": {"Drained": "KubectlDrainCompleted", "MaintenancePlanned": "", "Ready": "KubeletReady"}},
    ],
)
def test_a_plan_or_an_end_of_work_is_no_owner(given):
    assert external_owner(marks(**given)) is None
