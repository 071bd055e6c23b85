"""Decoding of bytes into structs. An unreadable object costs only itself, never its list.

All decoders are built while this module is imported. A decoder built in a reader's thread crashed the process:
msgspec 0.22 reads a struct's annotations in Python, and another thread may decode with a half-read set.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from kube.client.errors import Unreadable
from kube.client.list_splitter import split_list
from kube.resources import EVERY
from kube.structs import CustomSeen, Seen
from kube.structs.meta import Identifier

T = TypeVar("T")
S = TypeVar("S", bound=Seen)
BAD_JSON = Exception  # of any class: bad input must not end its reader


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: Identifier = ""
    continue_: str | None = msgspec.field(default="", name="continue")


class ListOf(msgspec.Struct, frozen=True):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class IdentityMeta(msgspec.Struct, frozen=True):
    """Metadata of a broken object; the values may have any type."""

    name: Any = ""
    namespace: Any = ""
    uid: Any = ""


class Identity(msgspec.Struct, frozen=True):
    metadata: IdentityMeta = IdentityMeta()


@dataclass(frozen=True)
class Unread:
    """An object that exists but cannot be decoded."""

    uid: str  # blank: unknown
    name: str
    reason: str

    @classmethod
    def of(cls, uid: str, name: str, reason: str) -> "Unread":
        """Builds the record from unchecked values: truncates them and removes NUL, which PostgreSQL cannot store."""
        fields = (uid[:64], name[:317] or "(no name)", reason[:300])
        return cls(*(text.replace("\0", "") for text in fields))


@dataclass(frozen=True)
class Listed(Generic[S]):
    items: tuple[S, ...]
    unread: tuple[Unread, ...]
    meta: ListMeta


def _list_of(kind: type[Seen]) -> type[msgspec.Struct]:
    items = ("items", list[kind] | None, None)  # type: ignore[valid-type]
    return msgspec.defstruct(f"{kind.__name__}List", [("metadata", ListMeta), items], frozen=True)


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Builds a decoder. Call it only while a module is imported."""
    return msgspec.json.Decoder(kind, strict=False)


STRUCTS: frozenset[type[Seen]] = frozenset({CustomSeen, *(resource.struct for resource in EVERY)})
OF_ONE: Mapping[type[Seen], msgspec.json.Decoder[Any]] = {kind: decoder(kind) for kind in STRUCTS}
OF_A_LIST: Mapping[type[Seen], msgspec.json.Decoder[Any]] = {kind: decoder(_list_of(kind)) for kind in STRUCTS}
ANY_LIST = decoder(ListOf)
IDENTITY = decoder(Identity)


def decode(body: bytes, kind: type[S]) -> S:
    """Decodes one object.

    :raises Unreadable: with the error and its position
    """
    return decode_by(OF_ONE[kind], body)


def decode_by(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """Decodes a body.

    :raises Unreadable: with the error and its position
    """
    try:
        return decoder.decode(body)
    except BAD_JSON as error:
        raise Unreadable(f"The answer has an unexpected format: {error}") from error


def decode_list(body: bytes, kind: type[S]) -> Listed[S]:
    """Decodes a list; unreadable items are returned separately.

    :raises Unreadable: when the body is not a list
    """
    decoder = OF_A_LIST[kind]
    try:
        decoded = decoder.decode(body)
    except BAD_JSON:
        return _decode_one_by_one(body, kind)
    return Listed(tuple(decoded.items or ()), (), decoded.metadata)


def decode_one(raw: bytes | msgspec.Raw, kind: type[S]) -> S | Unread:
    decoder: msgspec.json.Decoder[S] = OF_ONE[kind]
    try:
        return decoder.decode(raw)
    except BAD_JSON as error:
        return _unread(raw, str(error))


def _decode_one_by_one(body: bytes, kind: type[S]) -> Listed[S]:
    items, meta = _items_of(body)
    decoded = [decode_one(item, kind) for item in items]
    readable = tuple(item for item in decoded if not isinstance(item, Unread))
    return Listed(readable, tuple(item for item in decoded if isinstance(item, Unread)), meta)


def _items_of(body: bytes) -> tuple[list[Any], ListMeta]:
    try:
        page = ANY_LIST.decode(body)
    except BAD_JSON as error:
        if (split := split_list(body)) is None:
            raise Unreadable(f"The answer has an unexpected format: {error}") from error
        return list(split.items), decode_by(ANY_LIST, split.rest).metadata
    return list(page.items or ()), page.metadata


def _unread(raw: bytes | msgspec.Raw, reason: str) -> Unread:
    try:
        metadata = IDENTITY.decode(raw).metadata
    except BAD_JSON:
        metadata = IdentityMeta()
    name = "/".join(part for part in (metadata.namespace, metadata.name) if isinstance(part, str) and part)
    uid = metadata.uid if isinstance(metadata.uid, str) else ""
    return Unread.of(uid, name, reason)
