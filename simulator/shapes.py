"""JSON types that a typed decoder would refuse, for the members that the rest of the store reads.

The unquoted `true` of a label is the commonest of them, and a server that let it pass would hide it from everybody.
"""

from collections.abc import Iterator, Mapping
from enum import Enum
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


def check(kind: Kind, obj: Obj, *, is_patched: bool = False) -> None:
    """:raises Refused: 400; of what a patch would make, 422."""
    for path, shape in (*EVERY.items(), *OWN.get(kind.shelf, {}).items()):
        for value in _at(obj, path.split(".")):
            found = _wrong(value, shape)
            if found:
                raise _refusal(kind, path.replace("[]", ""), shape, found, is_patched=is_patched)


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


def _at(value: Any, parts: list[str]) -> Iterator[Any]:
    if not parts:
        yield value
        return
    name, rest = parts[0], parts[1:]
    held = value.get(name.removesuffix("[]")) if isinstance(value, Mapping) else None
    if not name.endswith("[]"):
        yield from _at(held, rest)
    elif isinstance(held, list):
        for item in held:
            yield from _at(item, rest)


def _wrong(value: Any, shape: Shape) -> str:
    """The JSON type found instead; empty when all is well. null is as good as absent."""
    if value is None:
        return ""
    match shape:
        case Shape.OBJECTS | Shape.TEXTS:
            wanted: type = dict if shape is Shape.OBJECTS else str
            return _named(value) if not isinstance(value, list) else _first_other(value, wanted)
        case Shape.TEXT_MAP:
            return _named(value) if not isinstance(value, Mapping) else _first_other(value.values(), str)
        case Shape.NUMBER:
            return "" if isinstance(value, int) and not isinstance(value, bool) else _named(value)
    wanted = {Shape.TEXT: str, Shape.FLAG: bool, Shape.OBJECT: dict}[shape]
    return "" if isinstance(value, wanted) else _named(value)


def _first_other(values: Any, wanted: type) -> str:
    return next((_named(value) for value in values if not isinstance(value, wanted) and value is not None), "")


def _named(value: Any) -> str:
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")
