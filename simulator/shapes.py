"""JSON types that a typed decoder would refuse, for the members that the rest of the store reads.

The unquoted `true` of a label is the commonest of them, and a server that let it pass would hide it from everybody.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import Any

from simulator.kinds import Kind
from simulator.refusals import Cause, Refused, bad_request

Obj = Mapping[str, Any]


class Shape(Enum):
    TEXT = "string"
    FLAG = "bool"
    NUMBER = "int32"
    OBJECT = "object"
    OBJECTS = "[]object"
    TEXTS = "[]string"
    TEXT_MAP = "map[string]string"


S = Shape
EVERY: Mapping[str, Shape] = {
    "metadata": S.OBJECT,
    "metadata.name": S.TEXT,
    "metadata.generateName": S.TEXT,
    "metadata.namespace": S.TEXT,
    "metadata.resourceVersion": S.TEXT,
    "metadata.uid": S.TEXT,
    "metadata.labels": S.TEXT_MAP,
    "metadata.annotations": S.TEXT_MAP,
    "metadata.finalizers": S.TEXTS,
    "metadata.ownerReferences": S.OBJECTS,
    "spec": S.OBJECT,
    "status": S.OBJECT,
}
CONTAINER = {
    "name": S.TEXT,
    "image": S.TEXT,
    "env": S.OBJECTS,
    "ports": S.OBJECTS,
    "resources": S.OBJECT,
    "resources.limits": S.OBJECT,
    "resources.requests": S.OBJECT,
}
POD_SPEC: Mapping[str, Shape] = {
    "nodeName": S.TEXT,
    "nodeSelector": S.TEXT_MAP,
    "tolerations": S.OBJECTS,
    "volumes": S.OBJECTS,
    "terminationGracePeriodSeconds": S.NUMBER,
    **{
        f"{member}{path}": shape
        for member in ("containers", "initContainers")
        for path, shape in {"": S.OBJECTS, **{f"[].{name}": shape for name, shape in CONTAINER.items()}}.items()
    },
}
SELECTOR: Mapping[str, Shape] = {
    "spec.selector": S.OBJECT,
    "spec.selector.matchLabels": S.TEXT_MAP,
    "spec.selector.matchExpressions": S.OBJECTS,
}
TEMPLATE: Mapping[str, Shape] = {
    "spec.template": S.OBJECT,
    "spec.template.metadata": S.OBJECT,
    "spec.template.metadata.labels": S.TEXT_MAP,
    "spec.template.metadata.annotations": S.TEXT_MAP,
    "spec.template.spec": S.OBJECT,
    **{f"spec.template.spec.{path}": shape for path, shape in POD_SPEC.items()},
}
WORKLOAD: Mapping[str, Shape] = {**SELECTOR, **TEMPLATE, "spec.replicas": S.NUMBER, "status.conditions": S.OBJECTS}
RULES: Mapping[str, Shape] = {"rules": S.OBJECTS}
BINDING: Mapping[str, Shape] = {"roleRef": S.OBJECT, "subjects": S.OBJECTS}
OWN: Mapping[tuple[str, str], Mapping[str, Shape]] = {
    ("", "nodes"): {
        "spec.taints": S.OBJECTS,
        "spec.unschedulable": S.FLAG,
        "status.addresses": S.OBJECTS,
        "status.allocatable": S.OBJECT,
        "status.capacity": S.OBJECT,
        "status.conditions": S.OBJECTS,
        "status.nodeInfo": S.OBJECT,
    },
    ("", "pods"): {
        **{f"spec.{path}": shape for path, shape in POD_SPEC.items()},
        "status.conditions": S.OBJECTS,
        "status.containerStatuses": S.OBJECTS,
        "status.initContainerStatuses": S.OBJECTS,
    },
    ("", "configmaps"): {"data": S.TEXT_MAP},
    ("", "secrets"): {"data": S.TEXT_MAP, "stringData": S.TEXT_MAP},
    **{("apps", plural): WORKLOAD for plural in ("daemonsets", "deployments", "replicasets", "statefulsets")},
    ("batch", "jobs"): {**WORKLOAD, "spec.parallelism": S.NUMBER, "spec.completions": S.NUMBER},
    ("policy", "poddisruptionbudgets"): {**SELECTOR, "status.conditions": S.OBJECTS},
    ("rbac.authorization.k8s.io", "clusterroles"): RULES,
    ("rbac.authorization.k8s.io", "roles"): RULES,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): BINDING,
    ("rbac.authorization.k8s.io", "rolebindings"): BINDING,
    ("apiextensions.k8s.io", "customresourcedefinitions"): {"spec.names": S.OBJECT, "spec.versions": S.OBJECTS},
}


@dataclass(slots=True)
class Member:
    shape: Shape | None = None
    members: "dict[str, Member]" = field(default_factory=dict)


@cache
def _tree(shelf: tuple[str, str]) -> Member:
    """The paths of a kind as a tree, so that a look costs only what is there."""
    root = Member()
    for path, shape in (*EVERY.items(), *OWN.get(shelf, {}).items()):
        at = root
        for part in path.replace("[]", "").split("."):
            at = at.members.setdefault(part, Member())
        at.shape = shape
    return root


def check(kind: Kind, obj: Obj, *, is_patched: bool = False) -> None:
    """:raises Refused: 400; of what a patch would make, 422."""
    complaint = _complaint(_tree(kind.shelf), obj, "")
    if complaint:
        path, shape, found = complaint
        raise _refusal(kind, path, shape, found, is_patched=is_patched)


def _complaint(member: Member, value: Any, path: str) -> tuple[str, Shape, str] | None:
    """The first path whose value is of another type than it should be."""
    found = _wrong(value, member.shape) if member.shape else ""
    if member.shape and found:
        return path, member.shape, found
    if not member.members:
        return None
    for holder in value if isinstance(value, list) else (value,):
        for name, below in member.members.items():
            held = holder.get(name)
            complaint = held is not None and _complaint(below, held, f"{path}.{name}" if path else name)
            if complaint:
                return complaint
    return None


def _refusal(kind: Kind, path: str, shape: Shape, found: str, *, is_patched: bool) -> Refused:
    owner = "ObjectMeta" if path.startswith("metadata") else kind.name
    words = f"json: cannot unmarshal {found} into Go struct field {owner}.{path} of type {_scalar(shape)}"
    if is_patched:
        cause = Cause("patch", f"Invalid value: {words}")
        message = f' "" is invalid: patch: {cause.message}'
        return Refused(422, "Invalid", message, details={"causes": [cause.as_json()]})
    return bad_request(f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: {words}')


def _scalar(shape: Shape) -> str:
    return "string" if shape in (Shape.TEXTS, Shape.TEXT_MAP) else shape.value


def _wrong(value: Any, shape: Shape) -> str:
    """The JSON type found instead; empty when all is well."""
    match shape:
        case Shape.OBJECTS | Shape.TEXTS:
            wanted: type = dict if shape is Shape.OBJECTS else str
            return _named(value) if not isinstance(value, list) else _first_other(value, wanted)
        case Shape.TEXT_MAP:
            return _named(value) if not isinstance(value, dict) else _first_other(value.values(), str)
        case Shape.NUMBER:
            return "" if isinstance(value, int) and not isinstance(value, bool) else _named(value)
    wanted = {Shape.TEXT: str, Shape.FLAG: bool, Shape.OBJECT: dict}[shape]
    return "" if isinstance(value, wanted) else _named(value)


def _first_other(values: Any, wanted: type) -> str:
    return next((_named(value) for value in values if not isinstance(value, wanted)), "")


def _named(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")
