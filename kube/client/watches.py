"""The watch of one kind: changes and bookmarks from a resource version on."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec
import structlog
import urllib3
from urllib3.exceptions import ReadTimeoutError

from kube.client.connection import Connection, said_of, translated
from kube.client.decoder import BAD_JSON, Unread, decode_one, decoder
from kube.client.errors import Silent, Status, Unreachable, Unreadable, error_from, read_status
from kube.resources import Resource
from kube.structs import Seen
from kube.structs.meta import Identifier

OPEN_S = 20.0  # a watch is answered at once, but may wait its turn for 15 s at a busy server
SILENT_S = 90.0  # API servers send a bookmark about once a minute
A_PIECE = 64 * 1024
LONGEST_LINE = 32 * 2**20  # etcd takes objects of 1.5 MiB
log = structlog.get_logger(__name__)
S = TypeVar("S", bound=Seen)


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"
    ERROR = "ERROR"


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[S]):
    object: S | None  # None: a bookmark, or an object that cannot be read
    is_gone: bool
    resource_version: str
    unread: Unread | None = None


class WatchEvent(msgspec.Struct, frozen=True):
    type: EventType
    object: msgspec.Raw


class BookmarkMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: Identifier = ""


class BookmarkObject(msgspec.Struct, frozen=True):
    metadata: BookmarkMeta = BookmarkMeta()


EVENT, BOOKMARK = decoder(WatchEvent), decoder(BookmarkObject)


class Watch(Generic[S]):
    """An open watch. Iterate it in one thread; `close()` it from any."""

    def __init__(self, connection: Connection, resource: Resource[S], resource_version: str, *, seconds: float) -> None:
        """:raises Gone: when the server forgot that version; anything else it says as its own error"""
        self.received_at = time.monotonic()  # when the bytes came that are being read
        self._server = connection.server
        self._without_secrets = connection.without_secrets
        self._resource = resource
        self._is_closed = False
        self._response: urllib3.BaseHTTPResponse = connection.open(
            "GET",
            resource.path(),
            {
                "watch": 1,
                "allowWatchBookmarks": "true",
                "resourceVersion": resource_version,
                "timeoutSeconds": max(1, round(seconds)),
                **resource.query,
            },
            read_s=OPEN_S,
        )
        _be_patient(self._response, SILENT_S)

    def __iter__(self) -> Iterator[ObjectChange[S]]:
        """Ends when the server or `close()` ends it.

        :raises Gone: an ERROR event that says so: list again
        :raises Silent: when the server says nothing whole for `SILENT_S`
        :raises Unreadable: what was sent is no event. What it would have told is lost: list again
        """
        for line in self._lines():
            yield read_event(line, self._resource, without_secrets=self._without_secrets)

    def close(self) -> None:
        """Wake up whoever reads. Safe to call twice, and after the end."""
        self._is_closed = True
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError) as error:
            # It ended by itself a moment ago, which is what we wanted.
            log.debug("the watch had ended", reason=str(error))

    def _lines(self) -> Iterator[bytes]:
        """An event may come in thousands of pieces: each is looked at once."""
        begun, whole_at = bytearray(), time.monotonic()
        for piece in self._pieces():
            self.received_at = time.monotonic()
            *ends, rest = piece.split(b"\n")
            if ends:
                ends[0] = bytes(begun) + ends[0]
                begun, whole_at = bytearray(), self.received_at
            elif self.received_at - whole_at > SILENT_S:
                raise self._silence("sent no whole event")
            begun += rest
            if len(begun) > LONGEST_LINE:
                name, most = self._resource.name, LONGEST_LINE // 2**20
                raise Unreadable(f"A watch of {name} sent an event of more than {most} MiB.")
            yield from filter(None, ends)

    def _pieces(self) -> Iterator[bytes]:
        try:
            with translated(self._server):
                yield from self._response.stream(A_PIECE)
        except Unreachable as error:
            if self._is_closed:
                return
            if isinstance(error.__cause__, ReadTimeoutError):
                raise self._silence("said nothing") from error
            raise
        except Exception:
            if not self._is_closed:
                raise
        finally:
            self._response.close()

    def _silence(self, what: str) -> Silent:
        said = f"{what} about {self._resource.name} for {SILENT_S:.0f} s, not even a bookmark."
        return said_of(self._server, Silent, said)


def read_event(
    line: bytes, resource: Resource[S], *, without_secrets: Callable[[bytes], bytes] = bytes
) -> ObjectChange[S]:
    """:raises ClusterError: an ERROR event's, or Unreadable: it is none"""
    try:
        event = EVENT.decode(line)
    except BAD_JSON as error:
        raise Unreadable(f"A watch of {resource.name} sent something that is no event: {error}") from error
    if event.type is EventType.ERROR:
        raise error_from(read_status(without_secrets(bytes(event.object))) or Status())
    if event.type is EventType.BOOKMARK:
        return ObjectChange(None, is_gone=False, resource_version=_version_of(event.object))
    seen = decode_one(event.object, resource.struct)
    is_gone = event.type is EventType.DELETED
    if isinstance(seen, Unread):
        return ObjectChange(None, is_gone, _version_of(event.object), unread=seen)
    return ObjectChange(seen, is_gone, seen.resource_version)


def _be_patient(response: urllib3.BaseHTTPResponse, seconds: float) -> None:
    """Give what follows the headers its own time; until here a server that accepts and is silent was given up soon."""
    # Of a connection that is closed after this answer, urllib3 keeps the socket in no other place.
    sock = getattr(getattr(response, "_sock_shutdown", None), "__self__", None)
    if sock is not None:
        sock.settimeout(seconds)


def _version_of(raw: msgspec.Raw) -> str:
    """Blank: not even that can be read; the next event has one."""
    try:
        return BOOKMARK.decode(raw).metadata.resource_version
    except BAD_JSON:
        return ""
