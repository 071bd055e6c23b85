"""From bytes to structs. What cannot be read costs one object and one line in the log, never the list it came in."""

from functools import cache
from typing import Any, TypeVar

import msgspec
import structlog

from fleet.kube.errors import Unreadable
from fleet.kube.structs import Seen

log = structlog.get_logger(__name__)
T = TypeVar("T")
S = TypeVar("S", bound=Seen)


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(default="", name="continue")


class ListOf(msgspec.Struct, frozen=True):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class Identity(msgspec.Struct, frozen=True):
    """As much of an unreadable object as the log line needs."""

    metadata: dict[str, Any] = {}


@cache
def decoder_for(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind, strict=False)


def decode(body: bytes, kind: type[T]) -> T:
    """:raises Unreadable: with what is wrong and where"""
    try:
        return decoder_for(kind).decode(body)  # type: ignore[arg-type]
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreadable(f"The answer is not what we expect: {error}") from error


def decode_list(body: bytes, kind: type[S]) -> tuple[tuple[S, ...], ListMeta]:
    """The items that can be read, and where the list ends.

    :raises Unreadable: when it is no list at all
    """
    try:
        whole = _list_decoder_for(kind).decode(body)
        return tuple(whole.items or ()), whole.metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        # One of the items, or all of it: go through it one by one.
        page = decode(body, ListOf)
    found = (decode_one(item, kind) for item in page.items or ())
    return tuple(item for item in found if item is not None), page.metadata


def decode_one(raw: msgspec.Raw, kind: type[S]) -> S | None:
    """None: it cannot be read, and the log says so."""
    try:
        return decoder_for(kind).decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        log.warning("an object cannot be read", kind=kind.__name__, object=_name_of(raw), because=str(error))
        return None


@cache
def _list_decoder_for(kind: type[Seen]) -> msgspec.json.Decoder[Any]:
    items = ("items", list[kind] | None, None)  # type: ignore[valid-type]
    whole = msgspec.defstruct(f"{kind.__name__}List", [("metadata", ListMeta), items], frozen=True)
    return msgspec.json.Decoder(whole, strict=False)


def _name_of(raw: msgspec.Raw) -> str:
    try:
        metadata = msgspec.json.decode(raw, type=Identity).metadata
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "?"
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '?')}".lstrip("/")
