"""Other controllers that reboot, replace or drain a node at this moment, by their marks on it. Pure.

Whoever holds a node is shown and waited for, never fought (lifecycle R18). Sources: kubereboot/kured, --annotate-nodes;
karpenter.sh/docs/concepts/disruption; kubernetes/autoscaler, utils/taints; medik8s/node-maintenance-operator,
controllers/taint.go; openshift/machine-config-operator, pkg/daemon/constants; SlinkyProject/slurm-operator, through
NVIDIA/NVSentinel #909; kubernetes.io, reference/node/node-lifecycle-conditions (Kubernetes 1.37).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gpu.cordons import SENTINEL_WORKS
from gpu.labels import (
    AUTOSCALER_GOING,
    KARPENTER_GOING,
    KURED_REBOOTS,
    MAINTENANCE_DRAIN,
    MCO_STATE,
    SENTINEL_STATE,
    SLINKY_CORDON,
)

AUTOSCALER_DELETES = AUTOSCALER_GOING[0]  # the other taint only marks a candidate
MCO_WORKS = ("Working", "Rebooting")  # Degraded and Unreconcilable stay until a person mends the configuration
# By condition of Kubernetes: the work in progress. They name no owner; `Drained` and `MaintenancePlanned` are no work.
CONDITIONS = {"MaintenanceInProgress": "maintains the node", "DrainInProgress": "drains the node"}


@dataclass(frozen=True)
class NodeMarks:
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    taints: Collection[str]  # keys
    conditions: Mapping[str, str] = field(default_factory=dict)  # reason by type, for conditions that are True


@dataclass(frozen=True)
class ExternalOwner:
    name: str
    does: str  # a verb and its object
    mark: str  # that is on the node while it works

    @property
    def sentence(self) -> str:
        return f"{self.name} {self.does} ({self.mark}). Wait until the mark is gone, or ask its owner."


def external_owner(marks: NodeMarks) -> ExternalOwner | None:
    """Returns the external controller or person that works on the node. None: no known mark."""
    return next((owner for detect in DETECTORS if (owner := detect(marks)) is not None), None)


def _nvsentinel(marks: NodeMarks) -> ExternalOwner | None:
    state = marks.labels.get(SENTINEL_STATE, "")
    return (
        ExternalOwner("NVSentinel", "works on the node", f"{SENTINEL_STATE}={state}")
        if state in SENTINEL_WORKS
        else None
    )


def _kured(marks: NodeMarks) -> ExternalOwner | None:
    return ExternalOwner("Kured", "reboots the node", KURED_REBOOTS) if KURED_REBOOTS in marks.annotations else None


def _machine_config(marks: NodeMarks) -> ExternalOwner | None:
    state = marks.annotations.get(MCO_STATE, "")
    if state not in MCO_WORKS:
        return None
    return ExternalOwner("OpenShift's Machine Config Operator", "changes the node", f"{MCO_STATE}={state}")


def _slurm(marks: NodeMarks) -> ExternalOwner | None:
    if SLINKY_CORDON not in marks.annotations:
        return None
    return ExternalOwner("Slurm (Slinky)", "keeps the node drained", SLINKY_CORDON)


def _by_taint(keys: Sequence[str], name: str, does: str) -> Callable[[NodeMarks], ExternalOwner | None]:
    def detect(marks: NodeMarks) -> ExternalOwner | None:
        mark = next((key for key in keys if key in marks.taints), "")
        return ExternalOwner(name, does, mark) if mark else None

    return detect


def _by_condition(marks: NodeMarks) -> ExternalOwner | None:
    for condition, does in CONDITIONS.items():
        if condition in marks.conditions:
            reason = marks.conditions[condition]
            return ExternalOwner("Another client", does, f"condition {condition}{f', {reason}' if reason else ''}")
    return None


DETECTORS = (
    _nvsentinel,
    _kured,
    _by_taint(KARPENTER_GOING, "Karpenter", "replaces or removes the node"),
    _by_taint((AUTOSCALER_DELETES,), "The Cluster Autoscaler", "removes the node"),
    _by_taint((MAINTENANCE_DRAIN,), "The Node Maintenance Operator", "maintains the node"),
    _machine_config,
    _slurm,
    _by_condition,
)
