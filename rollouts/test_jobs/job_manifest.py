"""A Job that runs one pod on one node, once. Pure.

It has no token and no environment of services. The node is named by a field, as DaemonSets do it, and not by
`spec.nodeName`, which would pass by its taints.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Protocol

from gpu.labels import ASKED_AT

KEPT_FOR = timedelta(minutes=10)  # after its end, where nobody is left to delete it


class WantedJob(Protocol):
    """As a row says it."""

    @property
    def name(self) -> str: ...

    @property
    def node(self) -> str: ...

    @property
    def labels(self) -> dict[str, str]: ...

    @property
    def asked_at(self) -> str: ...


def is_ours(wanted: WantedJob, labels: Mapping[str, str], annotations: Mapping[str, str]) -> bool:
    """Whether a Job, or a pod, is of the row that this is of, and of no one of a database that was restored."""
    same = all(labels.get(key) == value for key, value in wanted.labels.items())
    return same and annotations.get(ASKED_AT) == wanted.asked_at


def job_of(wanted: WantedJob, pod: Mapping[str, Any], *, deadline: timedelta) -> dict[str, Any]:
    """`pod`: what its spec has beside what all have."""
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
