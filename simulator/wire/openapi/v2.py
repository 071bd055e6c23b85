"""/openapi/v2, for older clients: which parameters a patch of each kind takes, as JSON and as gnostic's protobuf.

It has no definitions: kubectl then validates nothing itself and merges by its own built-in types.
"""

import json
from collections.abc import Iterable
from typing import Any

from simulator.kinds import Kind
from simulator.wire.openapi.v3 import PATCH_PARAMETERS, gvk, object_path

Obj = dict[str, Any]
CONSUMES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")
LENGTH_DELIMITED = 2


def document(kinds: Iterable[Kind]) -> Obj:
    info = {"title": "Kubernetes", "version": "v1.33.5"}
    return {"swagger": "2.0", "info": info, "paths": {object_path(kind): {"patch": _patch(kind)} for kind in kinds}}


def _patch(kind: Kind) -> Obj:
    parameters = [{"name": name, "in": "query", "type": "string", "uniqueItems": True} for name in PATCH_PARAMETERS]
    return {
        "consumes": list(CONSUMES[: 2 if kind.is_custom else 3]),
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": gvk(kind),
    }


def as_protobuf(body: Obj) -> bytes:
    """Field numbers are those of gnostic's OpenAPIv2.proto."""
    info = _text(1, body["info"]["title"]) + _text(2, body["info"]["version"])
    items = b"".join(_field(2, _named(path, _path_item(item))) for path, item in body["paths"].items())
    return _text(1, body["swagger"]) + _field(2, info) + _field(8, items)


def _path_item(item: Obj) -> bytes:
    return _field(8, _operation(item["patch"]))


def _operation(operation: Obj) -> bytes:
    consumes = b"".join(_text(7, form) for form in operation["consumes"])
    parameters = b"".join(_field(8, _parameter(parameter)) for parameter in operation["parameters"])
    response = _field(1, _text(1, "OK"))
    responses = _field(9, _field(1, _named("200", response)))
    extensions = b"".join(
        _field(13, _text(1, key) + _field(2, _text(2, json.dumps(value))))
        for key, value in operation.items()
        if key.startswith("x-")
    )
    return consumes + parameters + responses + extensions


def _parameter(parameter: Obj) -> bytes:
    query = _text(2, parameter["in"]) + _text(3, parameter["name"]) + _text(6, parameter["type"])
    # ParametersItem.parameter / Parameter.non_body_parameter / NonBodyParameter.query_parameter_sub_schema
    return _field(1, _field(2, _field(3, query)))


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _field(2, value)


def _text(number: int, text: str) -> bytes:
    return _field(number, text.encode())


def _field(number: int, body: bytes) -> bytes:
    return _varint(number << 3 | LENGTH_DELIMITED) + _varint(len(body)) + body


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
