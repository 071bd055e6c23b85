"""Rows of owners of pods that want GPUs, and of the GPU operator's Deployments with its version."""

import re
from typing import Any

from fleet.observer.mirror.rows.driver_object import operator_version
from fleet.observer.mirror.rows.gpu_requests import CLAIMS_AT_MOST, extended_resources
from fleet.observer.mirror.rows.text import fitted, fitted_count, fitted_labels
from fleet.observer.mirror.watch_scope import WatchScope
from gpu.versions import tag_of
from kube.structs.daemonset import PodTemplate
from kube.structs.meta import Seen
from kube.structs.pod_groups import GroupedSeen
from kube.structs.workload import ReplicaSetSeen, WorkloadSeen

# gpu-operator, deployments/gpu-operator/templates/operator.yaml; OperatorHub's has only the second (#331).
OPERATOR = (("app", "gpu-operator"), ("app.kubernetes.io/component", "gpu-operator"))
INSTALLED_FROM = "olm.owner"  # operator-lifecycle-manager, pkg/lib/ownerutil/util.go: gpu-operator-certified.v24.6.1
JOB_SET, RAY_JOB = "JobSet", "RayJob"
VERSION = re.compile(r"v?\d+(\.\d+)+")


def workload_row(seen: WorkloadSeen, scope: WatchScope) -> dict[str, Any] | None:
    """Returns the row. None: its pods want no GPU, or it is an old revision."""
    template = seen.template
    resources, claims = extended_resources(template), claims_of(template)
    if not resources and not claims and not _is_operator_workload(seen, scope):
        return None
    if isinstance(seen, ReplicaSetSeen) and seen.is_history:
        return None
    return {
        **_common(seen, seen.kind, template),
        "desired": fitted_count(seen.desired),
        "suspended_pods": None if seen.suspended is None else fitted_count(seen.suspended),
        "ready": fitted_count(seen.ready),
        "failed": fitted_count(seen.failed),
        "resources": resources,
        "claims": claims,
        "operator_version": fitted(_operator_version(seen, _image_of(template)), 64),
    }


def grouped_row(seen: GroupedSeen) -> dict[str, Any] | None:
    """Returns the row, with the counts of pods that want GPUs. None: none does.

    Requests and suspended pods are of the template that requests most. Jobs of a suspended JobSet have rows themselves,
    and so does the RayJob that a suspended RayCluster belongs to.
    """
    groups = [(each, extended_resources(each.template), claims_of(each.template)) for each in seen.groups]
    wanting = [(group, resources, claims) for group, resources, claims in groups if resources or claims]
    if not wanting:
        return None
    largest, resources, claims = max(wanting, key=lambda each: sum(each[1].values()))
    pods = 0 if seen.is_finished else sum(group.pods for group, *_ in wanting)
    alike = sum(group.pods for group, its, _ in wanting if its == resources)
    owner = seen.metadata.owner
    is_part = seen.kind == JOB_SET or (owner is not None and owner.kind == RAY_JOB)
    is_demand = seen.is_suspended and not seen.is_finished and not is_part
    return {
        **_common(seen, seen.kind, largest.template),
        "desired": 0 if seen.is_suspended else fitted_count(pods),
        "suspended_pods": fitted_count(alike) if is_demand else None,
        "ready": 0,
        "failed": 0,
        "resources": resources,
        "claims": claims,
        "operator_version": "",
    }


def _common(seen: Seen, kind: str, template: PodTemplate) -> dict[str, Any]:
    owner = seen.metadata.owner
    return {
        "kind": kind,
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "created_at": seen.metadata.creation_timestamp,
        "owner_kind": fitted(owner.kind, 63) if owner else "",
        "owner_name": fitted(owner.name, 253) if owner else "",
        "owner_uid": fitted(owner.uid, 64) if owner else "",
        "image": _image_of(template),
        "pod_labels": fitted_labels(template.labels),
    }


def _image_of(template: PodTemplate) -> str:
    containers = template.spec.containers or []
    return fitted(containers[0].image, 500) if containers else ""


def claims_of(template: PodTemplate) -> list[str]:
    named = (one.resource_claim_name or one.resource_claim_template_name for one in template.spec.resource_claims or ())
    return sorted({fitted(name, 253) for name in named if name})[:CLAIMS_AT_MOST]


def _is_operator_workload(seen: WorkloadSeen, scope: WatchScope) -> bool:
    in_its_place = seen.kind == "Deployment" and seen.metadata.namespace in scope.operator_namespaces
    return in_its_place or _is_the_operator(seen)


def _is_the_operator(seen: WorkloadSeen) -> bool:
    labels = seen.template.labels
    return seen.kind == "Deployment" and any(labels.get(key) == of for key, of in OPERATOR)


def _operator_version(seen: WorkloadSeen, image: str) -> str:
    """Returns the version from chart labels, ClusterServiceVersion or image. Blank: unknown."""
    if not _is_the_operator(seen):
        return ""
    installed_from = seen.labels.get(INSTALLED_FROM, "").partition(".")[2]
    said = (operator_version(seen.labels), installed_from, tag_of(image))
    return next((found[0] for each in said if (found := VERSION.match(each))), "")
