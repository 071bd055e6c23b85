"""A pod's GPU requests and devices."""

from collections.abc import Iterator, Sequence
from typing import Any

from fleet.observer.mirror.rows.effective_requests import effective
from fleet.observer.mirror.rows.text import INTEGER_MOST, fitted
from gpu.resources import assigned_in, is_gpu_resource
from gpu.resources.names import GPU, VOLCANO
from kube.quantity import whole_quantity
from kube.structs import PodSeen
from kube.structs.daemonset import PodTemplate
from kube.structs.pod import Container

DEVICES_AT_MOST = 256
ASSIGNABLE = (GPU, VOLCANO)  # resources that schedulers place themselves, beside slices
CLAIMS_AT_MOST = 64
DeviceReport = tuple[str, str, str]  # resource, device, health


def extended_resources(seen: PodSeen | PodTemplate) -> dict[str, int]:
    """Returns the GPU resources that a pod occupies, as the scheduler counts them."""
    wanted = effective(seen.spec.containers or (), seen.spec.init_containers or (), requests_of_container)
    return {name: min(amount, INTEGER_MOST) for name, amount in sorted(wanted.items())}


def requests_of_container(container: Container) -> dict[str, int]:
    """Returns a container's GPU requests. A lone limit is the request, since extended resources cannot be
    overcommitted."""
    resources = container.resources
    if resources is None:
        return {}
    asked = (resources.limits or {}) | (resources.requests or {})
    wanted = {name: whole_quantity(amount) or 0 for name, amount in asked.items() if is_gpu_resource(name)}
    return {name.replace("\x00", ""): amount for name, amount in wanted.items() if amount}


def satisfied_by_claim(seen: PodSeen) -> set[str]:
    """Returns the extended resources that a claim of the scheduler satisfies, rather than a device plugin."""
    claim = seen.status.extended_resource_claim_status
    return {one.resource_name for one in claim.request_mappings or ()} if claim else set()


def claims_of(seen: PodSeen) -> list[str]:
    by_itself, by_templates = seen.spec.resource_claims or (), seen.status.resource_claim_statuses or ()
    by_scheduler = filter(None, [seen.status.extended_resource_claim_status])
    names = {one.resource_claim_name for one in (*by_itself, *by_templates, *by_scheduler)}
    return sorted(fitted(name, 253) for name in names if name)[:CLAIMS_AT_MOST]


def device_columns(seen: PodSeen) -> dict[str, Any]:
    reports = list(_kubelet_devices(seen))
    return {"devices": _devices(seen, reports), "unhealthy_devices": _unhealthy_devices(reports)}


def _devices(seen: PodSeen, reports: Sequence[DeviceReport]) -> dict[str, list[str]]:
    """Returns the devices by resource: from its scheduler's annotation, which the plugin follows, or from its
    kubelet.

    A share is reported as its GPU: a replica's ID is the device's ID, `::` and a number (internal/rm/devices.go of
    k8s-device-plugin).
    """
    found: dict[str, set[str]] = {}
    for name, device, _ in reports:
        found.setdefault(name, set()).add(device)
    if assigned := assigned_in(seen.annotations):
        found |= {name: set(assigned) for name in extended_resources(seen) if name in ASSIGNABLE}
    return {name: sorted(ids)[:DEVICES_AT_MOST] for name, ids in sorted(found.items()) if ids}


def _unhealthy_devices(reports: Sequence[DeviceReport]) -> list[str]:
    """Returns the devices that the kubelet reports unhealthy, not those with unknown health."""
    sick = {device for _, device, health in reports if health == "Unhealthy"}
    return sorted(sick)[:DEVICES_AT_MOST]


def _kubelet_devices(seen: PodSeen) -> Iterator[DeviceReport]:
    for status in seen.status.of_all_containers:
        for allocated in status.allocated_resources_status or ():
            for each in (allocated.resources or ()) if is_gpu_resource(allocated.name) else ():
                if device := fitted(each.resource_id, 128).partition("::")[0]:
                    yield allocated.name, device, each.health or ""
