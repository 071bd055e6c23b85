"""From bytes to structs. What cannot be read costs one object, never the list it came in."""

from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from fleet.kube.errors import Unreadable
from fleet.kube.splitting import split_list
from fleet.kube.structs import Seen

T = TypeVar("T")
S = TypeVar("S", bound=Seen)
BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""
    continue_: str | None = msgspec.field(default="", name="continue")


class ListOf(msgspec.Struct, frozen=True):
    metadata: ListMeta
    items: list[msgspec.Raw] | None = None


class IdentityMeta(msgspec.Struct, frozen=True):
    """Of whatever type a broken object gives them."""

    name: Any = ""
    namespace: Any = ""
    uid: Any = ""


class Identity(msgspec.Struct, frozen=True):
    metadata: IdentityMeta = IdentityMeta()


@dataclass(frozen=True)
class Unread:
    """An object that cannot be read: it is there, and that is all that is known of it."""

    uid: str  # blank: not even that
    name: str
    because: str


@dataclass(frozen=True)
class Listed(Generic[S]):
    items: tuple[S, ...]
    unread: tuple[Unread, ...]
    meta: ListMeta


@cache
def decoder_for(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind, strict=False)


def decode(body: bytes, kind: type[T]) -> T:
    """:raises Unreadable: with what is wrong and where"""
    try:
        return decoder_for(kind).decode(body)  # type: ignore[arg-type]
    except BAD_JSON as error:
        raise Unreadable(f"The answer is not what we expect: {error}") from error


def decode_list(body: bytes, kind: type[S]) -> Listed[S]:
    """:raises Unreadable: when it is no list at all"""
    try:
        whole = _list_decoder_for(kind).decode(body)
        return Listed(tuple(whole.items or ()), (), whole.metadata)
    except BAD_JSON:
        return _decode_one_by_one(body, kind)


def decode_one(raw: bytes | msgspec.Raw, kind: type[S]) -> S | Unread:
    try:
        return decoder_for(kind).decode(raw)
    except BAD_JSON as error:
        return _unread(raw, str(error))


def _decode_one_by_one(body: bytes, kind: type[S]) -> Listed[S]:
    items, meta = _items_of(body)
    found = [decode_one(item, kind) for item in items]
    seen = tuple(one for one in found if not isinstance(one, Unread))
    return Listed(seen, tuple(one for one in found if isinstance(one, Unread)), meta)


def _items_of(body: bytes) -> tuple[list[Any], ListMeta]:
    try:
        page = decoder_for(ListOf).decode(body)
    except BAD_JSON as error:
        if (split := split_list(body)) is None:
            raise Unreadable(f"The answer is not what we expect: {error}") from error
        return list(split.items), decode(split.rest, ListOf).metadata
    return list(page.items or ()), page.metadata


@cache
def _list_decoder_for(kind: type[Seen]) -> msgspec.json.Decoder[Any]:
    items = ("items", list[kind] | None, None)  # type: ignore[valid-type]
    whole = msgspec.defstruct(f"{kind.__name__}List", [("metadata", ListMeta), items], frozen=True)
    return msgspec.json.Decoder(whole, strict=False)


def _unread(raw: bytes | msgspec.Raw, because: str) -> Unread:
    try:
        metadata = decoder_for(Identity).decode(raw).metadata
    except BAD_JSON:
        metadata = IdentityMeta()
    name = "/".join(part for part in (metadata.namespace, metadata.name) if isinstance(part, str) and part)
    uid = metadata.uid if isinstance(metadata.uid, str) else ""
    return Unread(uid[:64], name[:317] or "one without a name", because[:300])
