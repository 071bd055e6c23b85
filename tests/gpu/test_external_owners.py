"""Who else works on a node, by its marks (lifecycle R18)."""

import pytest

from gpu.conditions import whole_condition
from gpu.external_owners import NodeMarks, announced_work, external_owner


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


@pytest.mark.parametrize(
    ("label", "when"),
    [("1796119200", "2026-12-01 10:00 UTC"), ("soon", "soon"), ("9" * 40, "9" * 20), ("", "an unknown time")],
)
def test_host_maintenance_of_gke_is_announced_with_its_time(label: str, when: str):
    (said,) = announced_work({"cloud.google.com/scheduled-maintenance-time": label}, [])
    assert said == f"GKE plans host maintenance for {when}: it ends all pods, and no window holds it back."


@pytest.mark.parametrize(
    ("condition", "status", "minutes"),
    [("AcceleratedHardwareReady", "False", [10]), ("KernelReady", "False", [30]), ("KernelReady", "True", []),
     ("GpuXidError", "False", [])],
)  # fmt: skip
def test_the_repair_of_eks_is_announced_by_its_conditions(condition: str, status: str, minutes: list[int]):
    row = whole_condition({"type": condition, "status": status, "since": "2026-11-30T12:00:00+00:00"})
    said = list(announced_work({}, [row]))
    assert ["since 2026-11-30 12:00 UTC. Node auto repair of EKS" in each for each in said] == [True] * len(minutes)
    assert [f"after {number} min." in each for number, each in zip(minutes, said, strict=True)] == [True] * len(minutes)
