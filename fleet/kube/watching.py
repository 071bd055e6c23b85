"""The watch of one kind: changes and bookmarks from a resource version on."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec
import structlog
import urllib3

from fleet.kube.client import Connection, translated
from fleet.kube.decoding import decode_one, decoder_for
from fleet.kube.errors import Status, Unreadable, error_from, read_status
from fleet.kube.resources import Resource
from fleet.kube.structs import Seen

WATCH_READ_S = 90.0  # API servers send a bookmark about once a minute
A_PIECE = 64 * 1024
log = structlog.get_logger(__name__)
S = TypeVar("S", bound=Seen)


class What(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class Change(Generic[S]):
    object: S | None  # None: a bookmark, or an object that cannot be read
    is_gone: bool
    resource_version: str


class Line(msgspec.Struct, frozen=True):
    type: What
    object: msgspec.Raw


class MarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class Mark(msgspec.Struct, frozen=True):
    metadata: MarkMeta = MarkMeta()


class Watch(Generic[S]):
    """An open watch. Iterate it in one thread; `close()` it from any."""

    def __init__(self, connection: Connection, resource: Resource[S], resource_version: str, *, seconds: float) -> None:
        """:raises Gone: when the server forgot that version; anything else it says as its own error"""
        self._server = connection.server
        self._struct = resource.struct
        self._is_closed = False
        self._response: urllib3.BaseHTTPResponse = connection.open(
            "GET",
            resource.path(),
            {
                "watch": 1,
                "allowWatchBookmarks": "true",
                "resourceVersion": resource_version,
                "timeoutSeconds": max(1, round(seconds)),
            },
            read_s=WATCH_READ_S,
        )

    def __iter__(self) -> Iterator[Change[S]]:
        """Ends when the server or `close()` ends it.

        :raises Gone: an ERROR event that says so: list again
        """
        rest = b""
        for piece in self._pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line:
                    yield self._read(line)

    def close(self) -> None:
        """Wake up whoever reads. Safe to call twice, and after the end."""
        self._is_closed = True
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError) as error:
            # It ended by itself a moment ago, which is what we wanted.
            log.debug("the watch had ended", because=str(error))

    def _pieces(self) -> Iterator[bytes]:
        try:
            with translated(self._server):
                yield from self._response.stream(A_PIECE)
        except Exception:
            if not self._is_closed:
                raise
        finally:
            self._response.close()

    def _read(self, line: bytes) -> Change[S]:
        try:
            event = decoder_for(Line).decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unreadable(f"A watch sent something that is no event: {error}") from error
        if event.type is What.ERROR:
            raise error_from(read_status(bytes(event.object)) or Status())
        if event.type is What.BOOKMARK:
            return Change(None, is_gone=False, resource_version=_version_of(event.object))
        seen = decode_one(event.object, self._struct)
        version = seen.resource_version if seen is not None else _version_of(event.object)
        return Change(seen, is_gone=event.type is What.DELETED, resource_version=version)


def _version_of(raw: msgspec.Raw) -> str:
    """Blank: not even that can be read; the next event has one."""
    try:
        return decoder_for(Mark).decode(raw).metadata.resource_version
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
