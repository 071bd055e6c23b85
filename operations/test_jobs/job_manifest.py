"""A Job that runs one pod on one node, once. Pure.

It has no token and no service environment. The node is selected by a field, as DaemonSets do, since `spec.nodeName`
would ignore taints.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

from gpu.labels import ASKED_AT

KEPT_FOR = timedelta(minutes=10)  # after its end, where nobody is left to delete it


class WantedJob(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def node(self) -> str: ...

    @property
    def labels(self) -> dict[str, str]: ...

    @property
    def asked_at(self) -> str: ...


def is_ours(wanted: WantedJob, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Returns whether a Job or pod belongs to the row, and not to a row of a restored database."""
    same = all(labels.get(key) == value for key, value in wanted.labels.items())
    return same and annotations.get(ASKED_AT) == wanted.asked_at


def job_of(wanted: WantedJob, pod: Mapping[str, Any], *, deadline: timedelta) -> dict[str, Any]:
    """Returns the manifest. `pod` adds to the common part of the pod's spec."""
    metadata = {"labels": wanted.labels, "annotations": {ASKED_AT: wanted.asked_at}}
    on_it = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [wanted.node]}]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [on_it]}}
    of_all = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": affinity},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": wanted.name, **metadata},
        "spec": {
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "activeDeadlineSeconds": int(deadline.total_seconds()),
            "ttlSecondsAfterFinished": int(KEPT_FOR.total_seconds()),
            "template": {"metadata": metadata, "spec": {**of_all, **pod}},
        },
    }
