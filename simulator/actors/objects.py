"""What actors read off an object of the API."""

from collections.abc import Iterable
from typing import Any

Obj = dict[str, Any]
Key = tuple[str, str]  # namespace, name


def name(obj: Obj) -> str:
    return str(obj["metadata"]["name"])


def namespace(obj: Obj) -> str:
    return str(obj["metadata"].get("namespace", ""))


def key(obj: Obj) -> Key:
    return (namespace(obj), name(obj))


def uid(obj: Obj) -> str:
    return str(obj["metadata"]["uid"])


def labels(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations(obj: Obj) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def spec(obj: Obj) -> Obj:
    return obj.get("spec") or {}


def status(obj: Obj) -> Obj:
    return obj.get("status") or {}


def version(obj: Obj) -> int:
    return int(obj["metadata"]["resourceVersion"])


def generation(obj: Obj) -> int:
    return int(obj["metadata"].get("generation", 1))


def is_terminating(obj: Obj) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def owners(obj: Obj) -> list[Obj]:
    return obj["metadata"].get("ownerReferences") or []


def controller(obj: Obj) -> Obj | None:
    return next((owner for owner in owners(obj) if owner.get("controller")), None)


def controller_uid(obj: Obj) -> str:
    owner = controller(obj)
    return owner["uid"] if owner else ""


def owned_by(owner: Obj, *, api_version: str, kind: str) -> Obj:
    """An ownerReference as controllers write it."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name(owner),
        "uid": uid(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition(obj: Obj, type_: str) -> Obj:
    found = (each for each in status(obj).get("conditions") or () if each["type"] == type_)
    return next(found, {})


def is_true(obj: Obj, type_: str) -> bool:
    return condition(obj, type_).get("status") == "True"


def node_of(pod: Obj) -> str:
    return spec(pod).get("nodeName") or ""


def phase(pod: Obj) -> str:
    return status(pod).get("phase", "Pending")


def is_finished(pod: Obj) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_active(pod: Obj) -> bool:
    return not is_terminating(pod) and not is_finished(pod)


def is_unschedulable(node: Obj) -> bool:
    return bool(spec(node).get("unschedulable"))


def by_age(objects: Iterable[Obj]) -> list[Obj]:
    return sorted(objects, key=lambda obj: (obj["metadata"]["creationTimestamp"], name(obj)))
