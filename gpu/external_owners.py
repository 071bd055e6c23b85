"""Other controllers that reboot, replace or drain a node at this moment, by their marks on it. Pure.

Whoever holds a node is shown and waited for, never fought (lifecycle R18). `gpu.remediations` has those without a mark
on the node. Sources: kubereboot/kured, --annotate-nodes;
karpenter.sh/docs/concepts/disruption; kubernetes/autoscaler, utils/taints; medik8s/node-maintenance-operator,
controllers/taint.go; openshift/machine-config-operator, pkg/daemon/constants; SlinkyProject/slurm-operator, through
NVIDIA/NVSentinel #909; kubernetes.io, reference/node/node-lifecycle-conditions (Kubernetes 1.37).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from gpu.conditions import EKS
from gpu.cordons import SENTINEL_WORKS
from gpu.labels import (
    AUTOSCALER_GOING,
    FENCING,
    GKE_MAINTENANCE,
    KARPENTER_GOING,
    KURED_REBOOTS,
    MAINTENANCE_DRAIN,
    MCO_STATE,
    SELF_REMEDIATION,
    SENTINEL_STATE,
    SLINKY_CORDON,
)
from wording.instants import to_the_minute

AUTOSCALER_DELETES = AUTOSCALER_GOING[0]  # the other taint only marks a candidate
SENTINEL = "NVSentinel"
MCO_WORKS = ("Working", "Rebooting")  # Degraded and Unreconcilable stay until a person mends the configuration
# By condition of Kubernetes: the work in progress. They name no owner; `Drained` and `MaintenancePlanned` are no work.
EKS_GPUS = "AcceleratedHardwareReady"  # EKS repairs for it sooner than for other conditions
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
    seen_at: datetime | None = None  # when its object was last listed, where that is no longer now

    @property
    def sentence(self) -> str:
        as_of = f" As of {to_the_minute(self.seen_at)}: its objects were not listed since." if self.seen_at else ""
        return f"{self.name} {self.does} ({self.mark}). Wait until the mark is gone, or ask its owner.{as_of}"


def external_owner(marks: NodeMarks) -> ExternalOwner | None:
    """Returns the external controller or person that works on the node. None: no known mark."""
    return next((owner for detect in DETECTORS if (owner := detect(marks)) is not None), None)


def announced_work(labels: Mapping[str, str], conditions: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the work that a cloud announces for the node. Nobody is at work yet, so nothing waits for it.

    Sources: docs.cloud.google.com/ai-hypercomputer/docs/manage/manage-gke-clusters (the label, its value, and that
    maintenance windows do not bind it); docs.aws.amazon.com/eks/latest/userguide/node-repair.html. `conditions` are
    those of `gpu.conditions.whole_condition`.
    """
    if GKE_MAINTENANCE in labels:
        when = labels[GKE_MAINTENANCE][:20] or "an unknown time"
        with suppress(ValueError, OverflowError, OSError):
            when = to_the_minute(datetime.fromtimestamp(int(when), UTC))
        yield f"GKE plans host maintenance for {when}: it ends all pods, and no window holds it back."
    for each in conditions:
        if each["reporter"] == EKS and each["status"] == "False":
            minutes = 10 if each["type"] == EKS_GPUS else 30
            since = f" since {each['since'][:16].replace('T', ' ')} UTC" if each["since"] else ""
            yield (
                f"{each['type']} is False{since}. Node auto repair of EKS, where it is on, reboots or replaces the "
                f"node after {minutes} min."
            )


def _nvsentinel(marks: NodeMarks) -> ExternalOwner | None:
    state = marks.labels.get(SENTINEL_STATE, "")
    return (
        ExternalOwner(SENTINEL, "works on the node", f"{SENTINEL_STATE}={state}") if state in SENTINEL_WORKS else None
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
    _kured,
    _by_taint(KARPENTER_GOING, "Karpenter", "replaces or removes the node"),
    _by_taint((AUTOSCALER_DELETES,), "The Cluster Autoscaler", "removes the node"),
    _by_taint((MAINTENANCE_DRAIN,), "The Node Maintenance Operator", "maintains the node"),
    _by_taint((SELF_REMEDIATION,), "Self Node Remediation", "reboots the node"),
    _by_taint((FENCING,), "Fence Agents Remediation", "fences the node"),
    _machine_config,
    _slurm,
    _by_condition,
    _nvsentinel,  # last: whoever cancels its break-fix waits for the others
)
