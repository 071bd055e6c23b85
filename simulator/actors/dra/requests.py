"""Claims, their templates and their classes, as objects of the API."""

from collections.abc import Iterable

from simulator.actors.dra.api import Api
from simulator.actors.dra.slices import DRIVER
from simulator.actors.objects import Obj, name, namespace, owned_by, spec, status, uid

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
TYPE = f"device.attributes['{DRIVER}'].type == '{{kind}}'"
CLASSES = {
    "gpu.nvidia.com": f"device.driver == '{DRIVER}' && {TYPE.format(kind='gpu')}",
    "mig.nvidia.com": f"device.driver == '{DRIVER}' && {TYPE.format(kind='mig')}",
    "vfio.gpu.nvidia.com": f"device.driver == '{DRIVER}' && {TYPE.format(kind='vfio')}",
    "compute-domain-daemon.nvidia.com": "device.driver == 'compute-domain.nvidia.com'",
    "compute-domain-default-channel.nvidia.com": "device.driver == 'compute-domain.nvidia.com'",
}
Device = tuple[str, str]
"""Pool and device."""


def device_classes(api: Api) -> list[Obj]:
    return [
        {
            "apiVersion": api.api_version,
            "kind": "DeviceClass",
            "metadata": {"name": called},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        for called, expression in CLASSES.items()
    ]


def template(api: Api, called: str, where: str, *, request: str, count: int, is_admin: bool = False) -> Obj:
    """`is_admin`: looks at a device without taking it."""
    wanted: Obj = {"deviceClassName": DRIVER, "allocationMode": "ExactCount", "count": count}
    if is_admin:
        wanted["adminAccess"] = True
    return {
        "apiVersion": api.api_version,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": called, "namespace": where},
        "spec": {"spec": {"devices": {"requests": [api.request(request, wanted)]}}},
    }


def claim_for(api: Api, pod: Obj, asked: str, made_from: Obj) -> Obj:
    """What the resource claim controller makes for a pod that names a template."""
    return {
        "apiVersion": api.api_version,
        "kind": "ResourceClaim",
        "metadata": {
            "generateName": f"{name(pod)}-{asked}-",
            "namespace": namespace(pod),
            "annotations": {POD_CLAIM: asked},
            "ownerReferences": [owned_by(pod, api_version="v1", kind="Pod")],
        },
        "spec": made_from["spec"]["spec"],
    }


def allocation(api: Api, claim: Obj, given: Iterable[Device], node_name: str, pod: Obj) -> Obj:
    """The claim's status once devices are given and the pod may use them."""
    request = requests(claim)[0]
    is_admin = is_looking(api, claim)
    results = [
        {
            "request": request["name"],
            "driver": DRIVER,
            "pool": pool,
            "device": device,
            **({"adminAccess": True} if is_admin else {}),
        }
        for pool, device in given
    ]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node_name]}]}
    return {
        "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}},
        "reservedFor": [{"resource": "pods", "name": name(pod), "uid": uid(pod)}],
    }


def requests(claim: Obj) -> list[Obj]:
    return spec(claim).get("devices", {}).get("requests") or []


def count(api: Api, claim: Obj) -> int:
    return sum(int(api.wanted(request).get("count", 1)) for request in requests(claim))


def is_looking(api: Api, claim: Obj) -> bool:
    return any(api.wanted(request).get("adminAccess") for request in requests(claim))


def results(claim: Obj) -> list[Obj]:
    devices = (status(claim).get("allocation") or {}).get("devices") or {}
    return devices.get("results") or []


def taken(claim: Obj) -> set[Device]:
    """Devices that nobody else may have."""
    return {(result["pool"], result["device"]) for result in results(claim) if not result.get("adminAccess")}


def asked_by(pod: Obj) -> list[Obj]:
    return spec(pod).get("resourceClaims") or []


def claim_names(pod: Obj) -> dict[str, str]:
    """Of a pod's entries with a template: the claims that were made for them."""
    held = status(pod).get("resourceClaimStatuses") or []
    return {each["name"]: each["resourceClaimName"] for each in held if each.get("resourceClaimName")}
