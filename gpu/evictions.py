"""The GPU operator's eviction of pods before a driver update, as configured in `upgradePolicy`. Pure.

k8s-operator-libs, pkg/upgrade/{common_manager,pod_manager,drain_manager}.go and api/upgrade/v1alpha1/upgrade_spec.go
(defaults). GPU users: gpu-operator, cmd/gpu-operator/main.go. Refusals: kubectl, pkg/drain.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

EVICTED = ("nvidia.com/gpu", "nvidia.com/mig-")  # prefixes of resources whose pods are evicted
DRA_DRIVER = "gpu.nvidia.com"  # the driver of claims whose pods are evicted, since 26.7.0
CLIENT = "nvidia.com/gpu.deploy.client"  # in the nodeSelector of a DaemonSet: stopped with the driver, since 26.7.0
MANAGER_LABEL = "NODE_LABEL_FOR_GPU_POD_EVICTION"  # in `manager.env`: the label of one more DaemonSet to stop
SKIP_DRAIN = "nvidia.com/gpu-driver-upgrade-drain.skip"  # pod label, "true": a drain skips the pod
USUAL_S = 300
LONGEST_S = 10**9
PASSED_OVER = ("DaemonSet", "Node")  # kinds of owners; Node owns static pods
REPLICAS = ("ReplicaSet", "ReplicationController", "StatefulSet")  # kinds of owners whose pods stand for each other


class Hindrance(StrEnum):
    """The reason why a pod is not deleted. One such pod keeps all pods of its node."""

    DAEMON_SET = "daemon-set"  # such pods are skipped, so fewer pods are deleted than planned
    EMPTY_DIR = "empty-dir"
    NO_CONTROLLER = "no-controller"


@dataclass(frozen=True)
class Deletion:
    """The eviction of pods: those with GPUs (`podDeletion`), or all of a node (`drain`)."""

    is_forced: bool = False  # includes pods without a controller
    deletes_empty_dir: bool = False
    tries_for: timedelta = timedelta(seconds=USUAL_S)  # zero: no limit
    pod_selector: str = ""  # drain only; blank: all

    def hindrances(self, *, owner_kind: str, has_empty_dir: bool) -> tuple[Hindrance, ...]:
        """Returns the reasons against deleting a running pod. `owner_kind` is blank without a controller."""
        if owner_kind in PASSED_OVER:
            return (Hindrance.DAEMON_SET,)
        blocking = (Hindrance.EMPTY_DIR,) if has_empty_dir and not self.deletes_empty_dir else ()
        return (*blocking, Hindrance.NO_CONTROLLER) if not owner_kind and not self.is_forced else blocking


@dataclass(frozen=True)
class EvictionPolicy:
    pods: Deletion = Deletion()
    drain: Deletion | None = None  # fallback if pods cannot be deleted; None: the node fails
    waits_for: str = ""  # a selector of pods that may finish first; blank: none
    waits_at_most: timedelta = timedelta(0)  # zero: no limit


def is_evicted(resources: Iterable[str]) -> bool:
    """Tells whether the operator recognizes a pod as a GPU user by its requests."""
    return any(name.startswith(EVICTED) for name in resources)


def read_policy(given: Mapping[str, Any]) -> EvictionPolicy:
    """Reads `upgradePolicy`. Missing or invalid values become the operator's defaults."""
    waiting, drain = _mapping_at(given, "waitForCompletion"), _mapping_at(given, "drain")
    return EvictionPolicy(
        pods=_deletion(_mapping_at(given, "podDeletion")),
        drain=_deletion(drain) if drain.get("enable") is True else None,
        waits_for=_text_at(waiting, "podSelector"),
        waits_at_most=_duration_at(waiting, usual=0),
    )


def _deletion(given: Mapping[str, Any]) -> Deletion:
    return Deletion(
        is_forced=given.get("force") is True,
        deletes_empty_dir=given.get("deleteEmptyDir") is True,
        tries_for=_duration_at(given, usual=USUAL_S),
        pod_selector=_text_at(given, "podSelector"),
    )


def _mapping_at(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = given.get(name)
    return part if isinstance(part, Mapping) else {}


def _text_at(given: Mapping[str, Any], name: str) -> str:
    text = given.get(name)
    return text.strip() if isinstance(text, str) else ""


def _duration_at(given: Mapping[str, Any], *, usual: int) -> timedelta:
    value = given.get("timeoutSeconds")
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LONGEST_S:
        return timedelta(seconds=value)
    return timedelta(seconds=usual)
