"""Rows of DRA: slices, claims and classes.

Attribute names of gpu.nvidia.com: dra-driver-nvidia-gpu, cmd/gpu-kubelet-plugin/{deviceinfo,mig}.go; of gpu.amd.com:
docs/driver-attributes.md of ROCm/k8s-gpu-dra-driver; of gpu.intel.com and gaudi.intel.com: doc/{gpu,gaudi}/USAGE.md
of intel-resource-drivers-for-kubernetes. Other drivers are stored with their common attributes.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from fleet.observer.mirror.rows.nested_json import BIGGEST
from fleet.observer.mirror.rows.text import fitted, fitted_count
from kube.quantity import whole_quantity
from kube.structs.dra import (
    Attribute,
    ClaimSeen,
    ClassSeen,
    Device,
    DeviceSelector,
    Request,
    SliceSeen,
    SliceSpec,
    Wish,
)

AMD, INTEL = "gpu.amd.com", ("gpu.intel.com", "gaudi.intel.com")
PCI = ("resource.kubernetes.io/pciBusID", "pciAddr", "pciAddress")  # identifies devices that have no UUID
ADDRESSES = (*PCI, "pciBusID", "pcieBusID")  # NVIDIA's driver before it used the standard name: issues/719 of it
NUMA = ("resource.kubernetes.io/numaNode", "numaNode", "numa")
VIRTUAL_FUNCTION = "vfio-vf"  # a part of a board for virtual machines, which AMD's driver calls vfio as well: isVF
UNKNOWN = "Unknown"  # the model of a GPU that Intel's driver has no name for
MOST = 512  # entries of any list: the API itself allows 128 devices a slice and 32 requests a claim
WORDS = 2000  # of a CEL expression; the API takes 10 KiB


def slice_row(seen: SliceSeen) -> dict[str, Any]:
    spec = seen.spec or SliceSpec()
    devices = (spec.devices or [])[:MOST]
    slices = spec.pool.resource_slice_count if spec.pool else None
    return {
        "name": fitted(seen.name, 253),
        "driver": fitted(spec.driver, 63),
        "pool": fitted(spec.pool.name, 253) if spec.pool else "",
        "pool_generation": max(0, min(spec.pool.generation, BIGGEST)) if spec.pool else 0,
        "pool_slices": fitted_count(slices) if slices and slices > 0 else None,
        "node_name": fitted(spec.node_name or _only_node(devices), 253),
        "devices": [_device(device, spec.driver) for device in devices],
    }


def _only_node(devices: Iterable[Device]) -> str:
    """Returns the node if every device names the same one (perDeviceNodeSelection)."""
    named = {device.node_name or "" for device in devices}
    return named.pop() if len(named) == 1 else ""


def _device(device: Device, driver: str) -> dict[str, Any]:
    properties = device.properties
    said = {_unqualified(name, driver): value for name, value in (properties.attributes or {}).items()}
    held = {_unqualified(name, driver): value for name, value in (properties.capacity or {}).items()}
    memory = held.get("memory")
    return {
        "name": fitted(device.name, 63),
        "type": _type(said),
        "address": _first_attribute(said, *ADDRESSES),
        "uuid": _first_attribute(said, "uuid", *(PCI if driver in (AMD, *INTEL) else ())),
        "parent_uuid": _first_attribute(said, "parentUUID", *(("parentPciAddr", *PCI) if driver == AMD else ())),
        "product": _first_attribute(said, "productName") or (_model(said) if driver in INTEL else ""),
        "profile": _first_attribute(said, "profile", "partitionProfile"),
        "driver_version": _first_attribute(said, "driverVersion"),
        "memory_bytes": min(whole_quantity(memory.value) or 0, BIGGEST) if memory else None,
        "taints": [
            {"key": fitted(taint.key, 317), "value": fitted(taint.value, 253), "effect": fitted(taint.effect, 32)}
            for taint in (properties.taints or [])[:MOST]
        ],
        **({"healthy": False} if _is_called_unhealthy(said) else {}),
        **_numa(said),
    }


def _numa(said: dict[str, Attribute]) -> dict[str, int]:
    """Returns the NUMA node by the standard attribute (KEP-4381), else by the driver's own: NVIDIA's `numa`."""
    found = (said[name].int_ for name in NUMA if name in said)
    return next(({"numa": number} for number in found if number is not None and 0 <= number <= BIGGEST), {})


def _is_called_unhealthy(said: dict[str, Attribute]) -> bool:
    """Tells whether a driver reports a device unhealthy: Intel's by `healthy`, others by a text."""
    words = _first_attribute(said, "health", "healthStatus").lower()
    return ("healthy" in said and said["healthy"].bool_ is False) or words == "unhealthy"


def _type(said: dict[str, Attribute]) -> str:
    is_part = "isVF" in said and bool(said["isVF"].bool_)
    return VIRTUAL_FUNCTION if is_part else _first_attribute(said, "type")


def _model(said: dict[str, Attribute]) -> str:
    """Returns the model: Arc A770, Gaudi2."""
    words = (_first_attribute(said, "family"), _first_attribute(said, "model"))
    return " ".join(word for word in words if word not in ("", UNKNOWN))


def _unqualified(name: str, driver: str) -> str:
    """Removes the driver's own domain from a name; both spellings are valid."""
    return name.removeprefix(f"{driver}/")


def _first_attribute(said: dict[str, Attribute], *names: str) -> str:
    """Returns the first non-empty attribute."""
    found = (said[name].text for name in names if name in said)
    return next((fitted(text, 253) for text in found if text), "")


def claim_row(seen: ClaimSeen) -> dict[str, Any]:
    asked = seen.spec.devices.requests if seen.spec and seen.spec.devices else None
    constraints = seen.spec.devices.constraints if seen.spec and seen.spec.devices else None
    more = {"constrained": True} if constraints else {}
    return {
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "created_at": seen.metadata.creation_timestamp,
        "requests": [wish | more for request in (asked or [])[:MOST] for wish in _wishes(request)],
        "allocated": _allocated(seen),
        "reserved_for": _pods(seen),
    }


def _wishes(request: Request) -> Iterator[dict[str, Any]]:
    """Yields one request, or its alternatives as REQUEST/ALTERNATIVE, as in allocations."""
    if not request.first_available:
        yield _device_request(request.name, request.exactly or request)
    for alternative in request.first_available or ():
        yield _device_request(f"{request.name}/{alternative.name}", alternative)


def _device_request(name: str, wish: Wish) -> dict[str, Any]:
    is_all = wish.allocation_mode == "All"
    return {
        "name": fitted(name, 127),
        "device_class": fitted(wish.device_class_name, 253),
        "count": None if is_all else fitted_count(wish.count or 1),
        "all": is_all,
        "admin": bool(wish.admin_access),
        "selectors": _expressions(wish.selectors),
        **({"tolerant": True} if wish.tolerations else {}),
    }


def _allocated(seen: ClaimSeen) -> list[dict[str, Any]]:
    """Returns the allocated devices. `admin` is access beside the real user, as for monitoring."""
    allocation = seen.status.allocation if seen.status else None
    results = allocation.devices.results if allocation and allocation.devices else None
    return [
        {
            "request": fitted(result.request, 253),
            "driver": fitted(result.driver, 253),
            "pool": fitted(result.pool, 253),
            "device": fitted(result.device, 253),
            "admin": bool(result.admin_access),
        }
        for result in (results or [])[:MOST]
    ]


def _pods(seen: ClaimSeen) -> list[str]:
    """Returns the pods of a claim, which may be reserved for up to 256 consumers of any kind."""
    consumers = (seen.status.reserved_for if seen.status else None) or []
    return [fitted(one.uid, 64) for one in consumers[:MOST] if one.resource == "pods" and not one.api_group]


def class_row(seen: ClassSeen) -> dict[str, Any]:
    return {
        "name": fitted(seen.name, 253),
        "selectors": _expressions(seen.spec.selectors if seen.spec else None),
        "extended_resource_name": fitted(seen.spec.extended_resource_name, 253) if seen.spec else "",
    }


def _expressions(selectors: list[DeviceSelector] | None) -> list[str]:
    return [fitted(selector.cel.expression, WORDS) for selector in (selectors or [])[:MOST] if selector.cel]
