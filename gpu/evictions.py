"""How the GPU operator empties a node before its driver is replaced, by `upgradePolicy`. Pure.

k8s-operator-libs, pkg/upgrade/{common_manager,pod_manager,drain_manager}.go and api/upgrade/v1alpha1/upgrade_spec.go,
which has the defaults; who uses GPUs: gpu-operator, cmd/gpu-operator/main.go; what is refused: kubectl, pkg/drain.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

EVICTED = ("nvidia.com/gpu", "nvidia.com/mig-")  # how the names of resources begin whose pods are evicted
DRA_DRIVER = "gpu.nvidia.com"  # whose claims operators evict pods for, from 26.7.0 on
CLIENT = "nvidia.com/gpu.deploy.client"  # in the nodeSelector of a DaemonSet: stopped with the driver, from 26.7.0 on
MANAGER_LABEL = "NODE_LABEL_FOR_GPU_POD_EVICTION"  # in `manager.env`: the label of one more DaemonSet to stop
SKIP_DRAIN = "nvidia.com/gpu-driver-upgrade-drain.skip"  # label of pods, "true": a drain leaves them alone
USUAL_S = 300
LONGEST_S = 10**9
PASSED_OVER = ("DaemonSet", "Node")  # kinds of owners: the second is a static pod's


class Hindrance(StrEnum):
    """Why a pod is not deleted. Any of them, and nothing on its node is."""

    DAEMON_SET = "daemon-set"  # such pods are passed over, and then fewer are deleted than were to be
    EMPTY_DIR = "empty-dir"
    NO_CONTROLLER = "no-controller"


@dataclass(frozen=True)
class Deletion:
    """How pods are evicted: the ones that use GPUs (`podDeletion`), or all of a node (`drain`)."""

    is_forced: bool = False  # also those that no controller makes again
    deletes_empty_dir: bool = False
    tries_for: timedelta = timedelta(seconds=USUAL_S)  # zero: without an end
    pod_selector: str = ""  # drain only; blank: all

    def hindrances(self, *, owner_kind: str, has_empty_dir: bool) -> tuple[Hindrance, ...]:
        """None: it goes. Of a pod that is not done; `owner_kind` is blank where no controller has it."""
        if owner_kind in PASSED_OVER:
            return (Hindrance.DAEMON_SET,)
        keeps = (Hindrance.EMPTY_DIR,) if has_empty_dir and not self.deletes_empty_dir else ()
        return (*keeps, Hindrance.NO_CONTROLLER) if not owner_kind and not self.is_forced else keeps


@dataclass(frozen=True)
class EvictionPolicy:
    pods: Deletion = Deletion()
    drain: Deletion | None = None  # where pods could not be deleted; None: the node fails then
    waits_for: str = ""  # a selector of pods that may end first; blank: it waits for none
    waits_at_most: timedelta = timedelta(0)  # zero: without an end


def is_evicted(resources: Iterable[str]) -> bool:
    """Whether the operator sees by what a pod requests that it uses a GPU."""
    return any(name.startswith(EVICTED) for name in resources)


def read_policy(given: Mapping[str, Any]) -> EvictionPolicy:
    """From `upgradePolicy`. What is not said, or is no such thing, is as the operator has it by itself."""
    waiting, drain = _part(given, "waitForCompletion"), _part(given, "drain")
    return EvictionPolicy(
        pods=_deletion(_part(given, "podDeletion")),
        drain=_deletion(drain) if drain.get("enable") is True else None,
        waits_for=_text(waiting, "podSelector"),
        waits_at_most=_time(waiting, usual=0),
    )


def _deletion(given: Mapping[str, Any]) -> Deletion:
    return Deletion(
        is_forced=given.get("force") is True,
        deletes_empty_dir=given.get("deleteEmptyDir") is True,
        tries_for=_time(given, usual=USUAL_S),
        pod_selector=_text(given, "podSelector"),
    )


def _part(given: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = given.get(name)
    return part if isinstance(part, Mapping) else {}


def _text(given: Mapping[str, Any], name: str) -> str:
    text = given.get(name)
    return text.strip() if isinstance(text, str) else ""


def _time(given: Mapping[str, Any], *, usual: int) -> timedelta:
    said = given.get("timeoutSeconds")
    if isinstance(said, int) and not isinstance(said, bool) and 0 <= said <= LONGEST_S:
        return timedelta(seconds=said)
    return timedelta(seconds=usual)
