import pytest

from gpu.cordons import CordonedNode, sentinel_keeps, stale_cordon, whose_cordon
from gpu.labels import SENTINEL_CORDON

MARKED = {SENTINEL_CORDON: "NVSentinel"}


@pytest.mark.parametrize(
    ("manager", "labels", "words"),
    [
        ("gpu-operator", {}, " by gpu-operator, as the API server has it"),
        ("", {}, "; the API server does not show who set it"),
        ("", MARKED, ": the label k8saas.nvidia.com/cordon-by says NVSentinel"),
        (
            "kubectl",
            MARKED,
            " by kubectl, as the API server has it; the label k8saas.nvidia.com/cordon-by says NVSentinel",
        ),
    ],
)
def test_says_whose_a_cordon_is_as_far_as_the_cluster_does(manager, labels, words):
    assert whose_cordon(manager, labels) == words


EVENT = {"quarantineHealthEvent": '[{"checkName":"GpuMemWatch"}]'}


@pytest.mark.parametrize(
    ("labels", "annotations", "mark"),
    [
        (MARKED, EVENT, "quarantineHealthEvent"),
        (MARKED, {"quarantineHealthEvent": "[]"}, ""),
        (MARKED, {}, ""),  # stays after a manual uncordon
        ({}, EVENT, ""),
        ({}, EVENT | {"quarantineHealthEventCordonPreExisting": "True"}, "quarantineHealthEvent"),
        ({}, {"nvsentinel.nvidia.com/validation-session": "x"}, "nvsentinel.nvidia.com/validation-session"),
    ],
)
def test_nvsentinel_keeps_a_node_by_its_event_or_its_validation(labels, annotations, mark):
    """lifecycle R1, R2."""
    assert sentinel_keeps(labels, annotations) == mark


SENTINELS = {
    "k8saas.nvidia.com/cordon-by": "NVSentinel",
    "k8saas.nvidia.com/cordon-reason": "gpu-xid",
    "k8saas.nvidia.com/cordon-timestamp": "2026-11-01T00-00-00Z",
}
KURED_DONE = {"weave.works/kured-most-recent-reboot-needed": "2026-11-01T00:00:00Z"}


def cordoned(manager="", labels=(), annotations=(), taints=(), **given) -> CordonedNode:
    return CordonedNode("gpu-1", manager, dict(labels), dict(annotations), taints, **given)


@pytest.mark.parametrize(
    ("node", "by", "reason"),
    [
        (cordoned(labels=SENTINELS), "NVSentinel", "none of its conditions reports a fault"),
        (cordoned(labels={"example.com/cordon-by": "NVSentinel"}), "NVSentinel", "none of its conditions"),
        (cordoned(labels=SENTINELS, annotations={"quarantineHealthEvent": '[{"checkName":"GpuMemWatch"}]'}),
         "NVSentinel", "still has an event"),
        (cordoned(labels={**SENTINELS, "dgxc.nvidia.com/nvsentinel-state": "remediation-succeeded"}),
         "NVSentinel", "none of its conditions"),
        (cordoned(labels=SENTINELS, reporters=("kubelet",)), "NVSentinel", "none of its conditions"),
        (cordoned("gpu-operator", upgrade_state="upgrade-done"), "the GPU operator", "upgrade state is upgrade-done"),
        (cordoned("k8s-driver-manager"), "the GPU operator", "no upgrade state"),
        (cordoned("cluster-autoscaler"), "the Cluster Autoscaler", "ToBeDeletedByClusterAutoscaler was removed"),
        (cordoned("kured", annotations=KURED_DONE), "kured", "was removed and the node is ready"),
    ],
)  # fmt: skip
def test_a_cordon_whose_reason_is_gone_is_told_with_the_command_that_takes_it_off(node, by, reason):
    """A mark that lies after a recovery is named (R73.8)."""
    stale = stale_cordon(node)

    assert (stale.by, reason in stale.reason) == (by, True)
    assert stale.command.startswith("kubectl uncordon gpu-1")


def test_the_marks_of_nvsentinel_go_with_its_cordon():
    """NVIDIA/NVSentinel #1872: they stay after an uncordon, and name the wrong one of the next cordon."""
    command = stale_cordon(cordoned(labels=SENTINELS)).command

    assert all(f"{key}-" in command for key in SENTINELS)


@pytest.mark.parametrize(
    "node",
    [
        cordoned(),
        cordoned("kubectl"),
        cordoned(labels=SENTINELS, reporters=("NVSentinel",)),
        cordoned(labels={**SENTINELS, "dgxc.nvidia.com/nvsentinel-state": "draining"}),
        cordoned(labels=SENTINELS, annotations={"quarantineHealthEventCordonPreExisting": "True"}),
        cordoned(labels=SENTINELS, annotations={"nvsentinel.nvidia.com/validation-session": "s-1"}),
        cordoned("gpu-operator", upgrade_state="pod-restart-required"),
        cordoned("gpu-operator", upgrade_state="upgrade-failed"),
        cordoned(
            "gpu-operator", annotations={"nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable": "true"}
        ),
        cordoned("gpu-operator", annotations={"quarterdeck.io/cordoned-by": "plan-7"}),
        cordoned("cluster-autoscaler", taints=("ToBeDeletedByClusterAutoscaler",)),
        cordoned("kured"),
        cordoned("kured", annotations=KURED_DONE | {"weave.works/kured-reboot-in-progress": "now"}),
        cordoned("kured", annotations=KURED_DONE, is_ready=False),
    ],
)
def test_a_cordon_whose_reason_is_there_or_unknown_is_nobodys_to_call_stale(node):
    assert stale_cordon(node) is None
