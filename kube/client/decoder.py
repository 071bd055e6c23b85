"""From bytes to structs. What cannot be read costs one object, never the list it came in.

All decoders are built here, while this module is imported. One that was built in a reader's thread ended the process:
msgspec 0.22 reads the annotations of a struct in Python, and another thread can decode with what it has read by then.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from kube.client.errors import Unreadable
from kube.client.list_splitter import split_list
from kube.resources import EVERY
from kube.structs import Seen
from kube.structs.meta import Identifier

T = TypeVar("T")
S = TypeVar("S", bound=Seen)
BAD_JSON = Exception  # of whatever class: what somebody sent must not end who reads it


class ListMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: Identifier = ""
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
    reason: str

    @classmethod
    def of(cls, uid: str, name: str, reason: str) -> "Unread":
        """Of what may be anything: as long as it is kept, and without the NUL that PostgreSQL keeps in no text."""
        said = (uid[:64], name[:317] or "one without a name", reason[:300])
        return cls(*(text.replace("\0", "") for text in said))


@dataclass(frozen=True)
class Listed(Generic[S]):
    items: tuple[S, ...]
    unread: tuple[Unread, ...]
    meta: ListMeta


def _list_of(kind: type[Seen]) -> type[msgspec.Struct]:
    items = ("items", list[kind] | None, None)  # type: ignore[valid-type]
    return msgspec.defstruct(f"{kind.__name__}List", [("metadata", ListMeta), items], frozen=True)


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Call it where a module is imported, and nowhere else."""
    return msgspec.json.Decoder(kind, strict=False)


STRUCTS: frozenset[type[Seen]] = frozenset(resource.struct for resource in EVERY)
OF_ONE: Mapping[type[Seen], msgspec.json.Decoder[Any]] = {kind: decoder(kind) for kind in STRUCTS}
OF_A_LIST: Mapping[type[Seen], msgspec.json.Decoder[Any]] = {kind: decoder(_list_of(kind)) for kind in STRUCTS}
ANY_LIST = decoder(ListOf)
IDENTITY = decoder(Identity)


def decode(body: bytes, kind: type[S]) -> S:
    """:raises Unreadable: with what is wrong and where"""
    return decode_by(OF_ONE[kind], body)


def decode_by(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """:raises Unreadable: with what is wrong and where"""
    try:
        return decoder.decode(body)
    except BAD_JSON as error:
        raise Unreadable(f"The answer is not what we expect: {error}") from error


def decode_list(body: bytes, kind: type[S]) -> Listed[S]:
    """:raises Unreadable: when it is no list at all"""
    decoder = OF_A_LIST[kind]
    try:
        whole = decoder.decode(body)
    except BAD_JSON:
        return _decode_one_by_one(body, kind)
    return Listed(tuple(whole.items or ()), (), whole.metadata)


def decode_one(raw: bytes | msgspec.Raw, kind: type[S]) -> S | Unread:
    decoder: msgspec.json.Decoder[S] = OF_ONE[kind]
    try:
        return decoder.decode(raw)
    except BAD_JSON as error:
        return _unread(raw, str(error))


def _decode_one_by_one(body: bytes, kind: type[S]) -> Listed[S]:
    items, meta = _items_of(body)
    found = [decode_one(item, kind) for item in items]
    seen = tuple(one for one in found if not isinstance(one, Unread))
    return Listed(seen, tuple(one for one in found if isinstance(one, Unread)), meta)


def _items_of(body: bytes) -> tuple[list[Any], ListMeta]:
    try:
        page = ANY_LIST.decode(body)
    except BAD_JSON as error:
        if (split := split_list(body)) is None:
            raise Unreadable(f"The answer is not what we expect: {error}") from error
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
