"""The OpenAPI 2 document in gnostic's protobuf, the only form that older kubectl reads.

Field numbers are those of gnostic's OpenAPIv2.proto.
"""

import json
from typing import Any

Obj = dict[str, Any]
LENGTH_DELIMITED = 2


def encode(document: Obj) -> bytes:
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_field(2, _named(path, _path_item(item))) for path, item in document["paths"].items())
    held = b"".join(_field(1, _named(name, _schema(schema))) for name, schema in document["definitions"].items())
    return _text(1, document["swagger"]) + _field(2, info) + _field(8, paths) + _field(9, held)


def _path_item(item: Obj) -> bytes:
    return _field(8, _operation(item["patch"]))


def _operation(operation: Obj) -> bytes:
    consumes = b"".join(_text(7, form) for form in operation["consumes"])
    parameters = b"".join(_field(8, _parameter(parameter)) for parameter in operation["parameters"])
    responses = _field(9, _field(1, _named("200", _field(1, _text(1, "OK")))))
    return consumes + parameters + responses + _extensions(13, operation)


def _parameter(parameter: Obj) -> bytes:
    query = _text(2, parameter["in"]) + _text(3, parameter["name"]) + _text(6, parameter["type"])
    # ParametersItem.parameter / Parameter.non_body_parameter / NonBodyParameter.query_parameter_sub_schema
    return _field(1, _field(2, _field(3, query)))


def _schema(schema: Obj) -> bytes:
    out = b"".join(
        _text(number, schema[key]) for number, key in ((1, "$ref"), (2, "format"), (4, "description")) if key in schema
    )
    out += b"".join(_text(19, name) for name in schema.get("required", ()))
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        out += _field(21, _field(1, _schema(others)))
    if "type" in schema:
        out += _field(22, _text(1, schema["type"]))
    if "items" in schema:
        out += _field(23, _field(1, _schema(schema["items"])))
    members = schema.get("properties") or {}
    if members:
        out += _field(25, b"".join(_field(1, _named(name, _schema(member))) for name, member in members.items()))
    return out + _extensions(31, schema)


def _extensions(number: int, holder: Obj) -> bytes:
    """Their values travel as YAML, which JSON is."""
    return b"".join(
        _field(number, _text(1, key) + _field(2, _text(2, json.dumps(value))))
        for key, value in holder.items()
        if key.startswith("x-")
    )


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
