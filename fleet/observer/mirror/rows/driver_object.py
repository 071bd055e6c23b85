"""Rows of driver objects. GitOps and Helm marks are from their documentation.

kubernetes.io/docs/reference/labels-annotations-taints; argo-cd.readthedocs.io, "Resource tracking"; fluxcd.io.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from fleet.observer.mirror.rows.nested_json import fitted_json
from fleet.observer.mirror.rows.text import fitted, fitted_count, fitted_labels, fitted_words
from gpu.evictions import MANAGER_LABEL
from gpu.operands import MIG_DEFAULT_CONFIG
from kube.structs import DriverObjectSeen
from kube.structs.driver_object import DriverSpec
from kube.structs.meta import find

ARGO_ANNOTATION = "argocd.argoproj.io/tracking-id"
ARGO_LABEL = "argocd.argoproj.io/instance"
FLUX_PREFIXES = ("kustomize.toolkit.fluxcd.io", "helm.toolkit.fluxcd.io")
HELM_NAME, HELM_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"

# Fields of the spec with a version: names of `gpu.operands`.
OPERANDS: Mapping[str, str] = MappingProxyType(
    {
        "toolkit": "container-toolkit",
        "device_plugin": "device-plugin",
        "gfd": "gpu-feature-discovery",
        "dcgm": "dcgm",
        "dcgm_exporter": "dcgm-exporter",
        "mig_manager": "mig-manager",
        "validator": "operator-validator",
        "node_status_exporter": "node-status-exporter",
        "vgpu_manager": "vgpu-manager",
        "vgpu_device_manager": "vgpu-device-manager",
        "vfio_manager": "vfio-manager",
        "sandbox_device_plugin": "sandbox-device-plugin",
        "kata_sandbox_device_plugin": "kata-sandbox-device-plugin",
        "cc_manager": "cc-manager",
        "dra_driver": "dra-driver",
        "dcgm_dra": "dcgm-dra",
        "dcgm_exporter_dra": "dcgm-exporter-dra",
    },
)


def driver_object_row(seen: DriverObjectSeen) -> dict[str, Any]:
    driver = seen.driver
    return {
        "kind": seen.kind,
        "name": fitted(seen.name, 253),
        "generation": fitted_count(seen.metadata.generation),
        "version": fitted(driver.version, 64),
        "repository": fitted(driver.repository, 253),
        "image": fitted(driver.image, 253),
        "use_precompiled": bool(driver.use_precompiled),
        "is_driver_off": seen.is_driver_off,
        "uses_driver_crd": seen.uses_driver_crd,
        "sandbox_workloads": seen.sandbox_workloads,
        "node_selector": fitted_labels(driver.node_selector or {}),
        "is_fallback": bool(driver.default),
        "upgrade_policy": fitted_json(driver.upgrade_policy or {}),
        "manager_label": manager_label(driver),
        "state": fitted(seen.status.state, 32) if seen.status else "",
        "message": _message(seen),
        "operand_versions": operand_versions(seen),
        "mig_strategy": fitted(seen.mig_strategy, 16),
        "sharing_config": config_of(seen, "device_plugin"),
        "mig_config": mig_config_of(seen),
        "uses_cdi": seen.uses_cdi,
        "uses_nri": seen.uses_nri,
        "uses_rdma": seen.uses_rdma,
        "uses_gds": seen.uses_gds,
        "uses_gdrcopy": seen.uses_gdrcopy,
        "kernel_modules": fitted(driver.kernel_module_type, 16),
        "operator_version": fitted(operator_version(seen.labels), 64),
        "owned_by": owners(seen),
    }


def manager_label(driver: DriverSpec) -> str:
    """Returns the node label by which the driver manager stops an additional DaemonSet. Blank: none.

    k8s-driver-manager, cmd/driver-manager/main.go; required by NVIDIA's guide to the DRA driver with the operator.
    """
    said = (driver.manager.env if driver.manager else None) or ()
    return next((fitted(one.value, 317) for one in said if one.name == MANAGER_LABEL), "")


def operand_versions(seen: DriverObjectSeen) -> dict[str, str]:
    return {
        OPERANDS[field]: fitted(spec.version, 64)
        for field, spec in seen.operands.items()
        if spec is not None and spec.version and spec.enabled is not False
    }


def config_of(seen: DriverObjectSeen, field: str) -> str:
    """Returns the ConfigMap of an operand. Blank: none named, so the operand uses its default."""
    spec = seen.operands.get(field)
    return fitted(spec.config.name, 253) if spec is not None and spec.config else ""


def mig_config_of(seen: DriverObjectSeen) -> str:
    """Returns the ConfigMap of MIG managers. Blank: there are none.

    Without a name, as in the chart's default, the operator creates and mounts its own (gpu-operator,
    controllers/object_controls.go: MigPartedDefaultConfigMapName). The device plugin uses none without a name.
    """
    spec = seen.operands.get("mig_manager")
    if seen.kind != "ClusterPolicy" or (spec is not None and spec.enabled is False):
        return ""
    return config_of(seen, "mig_manager") or MIG_DEFAULT_CONFIG


def _message(seen: DriverObjectSeen) -> str:
    """Returns the operator's error: the Error condition if set, else why it is not ready."""
    conditions = seen.status.conditions if seen.status else None
    error, ready = find(conditions, "Error"), find(conditions, "Ready")
    telling = error if error is not None and error.status == "True" else ready
    if telling is None or (telling is ready and telling.status == "True"):
        return ""
    return fitted_words(1000, telling.reason, telling.message)


def operator_version(labels: dict[str, str]) -> str:
    """Returns the version from `app.kubernetes.io/version: v26.7.0`, else `helm.sh/chart: gpu-operator-v26.7.0`."""
    if version := labels.get("app.kubernetes.io/version"):
        return version
    return labels.get("helm.sh/chart", "").removeprefix("gpu-operator-")


def owners(seen: DriverObjectSeen) -> list[str]:
    """Returns other writers of this object by their marks; their next sync would undo our change."""
    marks = seen.annotations
    found = []
    if marks.get(HELM_NAME):
        found.append(f"Helm release {marks.get(HELM_NAMESPACE, '?')}/{marks[HELM_NAME]}")
    if tracked := marks.get(ARGO_ANNOTATION) or seen.labels.get(ARGO_LABEL):
        found.append(f"Argo CD {tracked.split(':', maxsplit=1)[0]}")
    found += [
        f"Flux {prefix.split('.', maxsplit=1)[0]} {seen.labels.get(f'{prefix}/namespace', '?')}/{name}"
        for prefix in FLUX_PREFIXES
        if (name := seen.labels.get(f"{prefix}/name"))
    ]
    return [fitted(mark, 600) for mark in found]
