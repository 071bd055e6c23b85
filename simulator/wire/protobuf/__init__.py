"""Kubernetes' protobuf, read only: recent kubectl writes some requests in it, and asks for JSON answers."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from simulator.clock import stamp
from simulator.wire.protobuf.messages import MESSAGES, Field, Plain

CONTENT_TYPE = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\x00"


class ProtobufError(ValueError):
    """Not in Kubernetes' envelope, or a kind whose message is not known here."""


def decode(body: bytes) -> dict[str, Any]:
    """:raises ProtobufError:"""
    if not body.startswith(MAGIC):
        raise ProtobufError("the body has no Kubernetes envelope")
    envelope = dict(_fields(body[len(MAGIC) :]))
    named = {number: _bytes(value).decode() for number, value in _fields(_bytes(envelope.get(1, b"")))}
    api_version, kind = named.get(1, ""), named.get(2, "")
    if kind not in MESSAGES:
        raise ProtobufError(f"no message is known for {kind or 'an object without a kind'}")
    return {"apiVersion": api_version, "kind": kind, **_message(kind, _bytes(envelope.get(2, b"")))}


def _message(name: str, body: bytes) -> dict[str, Any]:
    known, found = MESSAGES[name], dict[str, Any]()
    for number, raw in _fields(body):
        if number in known:
            _put(found, known[number], raw)
    return found


def _put(found: dict[str, Any], field: Field, raw: bytes | int) -> None:
    value = _value(field, raw)
    if field.is_repeated:
        found.setdefault(field.name, []).append(value)
    elif field.type in (Plain.TEXT_MAP, Plain.BYTES_MAP):
        found.setdefault(field.name, {}).update(value)
    elif value not in ("", None):  # proto2 of Go writes unset strings as empty ones
        found[field.name] = value


def _value(field: Field, raw: bytes | int) -> Any:
    if isinstance(field.type, str):
        return _message(field.type, _bytes(raw))
    match field.type:
        case Plain.TEXT:
            return _bytes(raw).decode()
        case Plain.NUMBER:
            return raw
        case Plain.FLAG:
            return bool(raw)
        case Plain.TIME:
            return _time(_bytes(raw))
        case _:
            return _entry(_bytes(raw), is_text=field.type is Plain.TEXT_MAP)


def _entry(raw: bytes, *, is_text: bool) -> dict[str, str]:
    pair = dict(_fields(raw))
    value = _bytes(pair.get(2, b""))
    return {_bytes(pair.get(1, b"")).decode(): value.decode() if is_text else base64.b64encode(value).decode()}


def _time(raw: bytes) -> str | None:
    seconds = dict(_fields(raw)).get(1)
    return stamp(datetime.fromtimestamp(seconds, UTC)) if isinstance(seconds, int) else None


def _bytes(raw: bytes | int) -> bytes:
    if isinstance(raw, int):
        raise ProtobufError("a number where text was expected")
    return raw


def _fields(body: bytes) -> Iterator[tuple[int, bytes | int]]:
    at = 0
    while at < len(body):
        tag, at = _varint(body, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(body, at)
            yield number, value
        elif wire == 2:
            length, at = _varint(body, at)
            yield number, body[at : at + length]
            at += length
        else:
            raise ProtobufError(f"wire type {wire} is not used by these messages")


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(body):
            raise ProtobufError("the body ends in the middle of a number")
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return value, at
