"""What the API server does to an object before it stores it: who owns which member, and when a generation begins."""

import random
import uuid
from datetime import datetime
from typing import Any

from simulator.clock import stamp
from simulator.kinds import Kind
from simulator.names import metadata_causes
from simulator.refusals import Cause, bad_request, conflict, invalid

Obj = dict[str, Any]

# k8s.io/apimachinery's rand: no vowels and no look-alikes.
SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
KEPT_METADATA = (
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
)

NAMED = ("labels", "annotations")


def name_of(obj: Obj) -> str:
    return (obj.get("metadata") or {}).get("name") or ""


def shaped(kind: Kind, obj: Obj, metadata: Obj) -> Obj:
    """The members in the order in which they are sent; lists rely on the first two."""
    rest = {key: value for key, value in obj.items() if key not in {"kind", "apiVersion", "metadata"}}
    return {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata, **rest}


def born(kind: Kind, obj: Obj, *, namespace: str, now: datetime, keep_status: bool) -> Obj:
    given = {key: value for key, value in (obj.get("metadata") or {}).items() if value not in (None, {}, [])}
    prefix = given.get("generateName", "")
    name = given.get("name") or (prefix + "".join(random.choices(SUFFIX_LETTERS, k=5)) if prefix else "")
    if not name:
        raise invalid(kind, "", _required("metadata.name", "name or generateName is required"))
    _agrees(obj, kind, given, namespace)
    for key in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink"):
        given.pop(key, None)
    metadata = {
        **given,
        "name": name,
        **({"namespace": namespace} if kind.namespaced else {}),
        "uid": given.get("uid") if keep_status and given.get("uid") else str(uuid.uuid4()),
        "creationTimestamp": given.get("creationTimestamp")
        if keep_status and "creationTimestamp" in given
        else stamp(now),
        **({"generation": 1} if kind.has_generation else {}),
    }
    new = shaped(kind, obj, metadata)
    if kind.has_status and not keep_status and kind.plural != "nodes":  # a kubelet registers its node with a status
        new.pop("status", None)
    return new


def _agrees(obj: Obj, kind: Kind, metadata: Obj, namespace: str) -> None:
    if metadata.get("namespace", namespace) != namespace and kind.namespaced:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    said = (obj.get("apiVersion"), obj.get("kind"))
    if said[1] not in (None, "", kind.name) or said[0] not in (None, "", kind.api_version):
        raise bad_request(f"{said[0]}, Kind={said[1]} does not match the expected {kind.api_version}, Kind={kind.name}")


def _required(field: str, words: str) -> Cause:
    return Cause(field, f"Required value: {words}", "FieldValueRequired")


def revised(kind: Kind, old: Obj, new: Obj, *, subresource: str) -> Obj:
    """`new` as it may replace `old`.

    :raises Refused: 409 where it was read from another version, 400 where it is another object.
    """
    _is_of(kind, old, new)
    metadata = _metadata(old["metadata"], new.get("metadata") or {})
    if subresource == "status":
        # Built-in kinds let labels and annotations through here; custom resources do not.
        held = old["metadata"] if kind.is_custom else metadata
        return _with_status({**old, "metadata": held}, new.get("status"))
    changed = shaped(kind, new, metadata)
    if kind.has_status:
        changed = _with_status(changed, old.get("status"))
    if kind.has_generation and _wanted(kind, changed) != _wanted(kind, old):
        metadata["generation"] = old["metadata"].get("generation", 0) + 1
    return changed


def _with_status(obj: Obj, status: Any) -> Obj:
    without = {key: value for key, value in obj.items() if key != "status"}
    return without if status is None else {**without, "status": status}


def _wanted(kind: Kind, obj: Obj) -> Obj:
    """What a new generation is about: the spec; of a custom resource all but metadata (and its status subresource)."""
    if not kind.is_custom:
        return {"spec": obj.get("spec")}
    return {key: value for key, value in obj.items() if key not in {"metadata", "status" if kind.has_status else ""}}


def _is_of(kind: Kind, old: Obj, new: Obj) -> None:
    was, said = old["metadata"], new.get("metadata") or {}
    name = was["name"]
    if said.get("name", name) != name:
        given = said["name"]
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if said.get("namespace") not in (None, "", was.get("namespace")):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    if said.get("resourceVersion") not in (None, "", was["resourceVersion"]):
        raise conflict(kind, name)
    if said.get("uid") not in (None, "", was["uid"]):
        why = f"Precondition failed: UID in precondition: {said['uid']}, UID in object meta: {was['uid']}"
        raise conflict(kind, name, why)


def _metadata(old: Obj, new: Obj) -> Obj:
    metadata = {key: value for key, value in new.items() if key not in KEPT_METADATA and value not in (None, {}, [])}
    kept = {key: old[key] for key in KEPT_METADATA if key in old}
    return {**metadata, "name": old["name"], **kept, "resourceVersion": old["resourceVersion"]}


def check_metadata(kind: Kind, obj: Obj, old: Obj | None = None) -> None:
    if old is not None and all(obj["metadata"].get(member) == old["metadata"].get(member) for member in NAMED):
        return
    causes = metadata_causes(kind, obj["metadata"])
    if causes:
        raise invalid(kind, obj["metadata"]["name"], *causes)
