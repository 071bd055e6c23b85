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

from kube.client.connection import Connection, server_error, translated
from kube.client.decoder import BAD_JSON, Unread, decode_one, decoder
from kube.client.errors import Silent, Status, Unreachable, Unreadable, error_from, read_status
from kube.resources import Resource
from kube.structs import Seen
from kube.structs.meta import Identifier

OPEN_S = 20.0  # a watch answers at once, but may queue for 15 s at a busy server
SILENT_S = 90.0  # API servers send a bookmark about once a minute
CHUNK_BYTES = 64 * 1024
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
    object: S | None  # None: a bookmark, or an object that cannot be decoded
    is_removed: bool
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
    """An open watch. Iterate it in one thread; call `close()` from any."""

    def __init__(self, connection: Connection, resource: Resource[S], resource_version: str, *, seconds: float) -> None:
        """Opens the watch.

        :raises Gone: when the server no longer has that version
        :raises ClusterError: for any other error of the server
        """
        self.received_at = time.monotonic()  # arrival time of the bytes being read
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
        _set_read_timeout(self._response, SILENT_S)

    def __iter__(self) -> Iterator[ObjectChange[S]]:
        """Yields changes until the server or `close()` ends the watch.

        :raises Gone: for an ERROR event with 410: list again
        :raises Silent: when no complete event arrives for `SILENT_S`
        :raises Unreadable: when the data is not an event; its change is lost: list again
        """
        for line in self._lines():
            yield read_event(line, self._resource, without_secrets=self._without_secrets)

    def close(self) -> None:
        """Wakes up the reader. Safe to call twice and after the end."""
        self._is_closed = True
        try:
            self._response.shutdown()
        except (OSError, ValueError, RuntimeError) as error:
            # The watch ended by itself a moment ago.
            log.debug("the watch had ended", reason=str(error))

    def _lines(self) -> Iterator[bytes]:
        """Yields complete lines. An event may arrive in thousands of chunks; each chunk is scanned once."""
        partial, complete_at = bytearray(), time.monotonic()
        for chunk in self._chunks():
            self.received_at = time.monotonic()
            *ends, rest = chunk.split(b"\n")
            if ends:
                ends[0] = bytes(partial) + ends[0]
                partial, complete_at = bytearray(), self.received_at
            elif self.received_at - complete_at > SILENT_S:
                raise self._silence("sent no complete event")
            partial += rest
            if len(partial) > LONGEST_LINE:
                name, most = self._resource.name, LONGEST_LINE // 2**20
                raise Unreadable(f"A watch of {name} sent an event of more than {most} MiB.")
            yield from filter(None, ends)

    def _chunks(self) -> Iterator[bytes]:
        try:
            with translated(self._server):
                yield from self._response.stream(CHUNK_BYTES)
        except Unreachable as error:
            if self._is_closed:
                return
            if isinstance(error.__cause__, ReadTimeoutError):
                raise self._silence("sent nothing") from error
            raise
        except Exception:
            if not self._is_closed:
                raise
        finally:
            self._response.close()

    def _silence(self, what: str) -> Silent:
        sentence = f"{what} about {self._resource.name} for {SILENT_S:.0f} s, not even a bookmark."
        return server_error(self._server, Silent, sentence)


def read_event(
    line: bytes, resource: Resource[S], *, without_secrets: Callable[[bytes], bytes] = bytes
) -> ObjectChange[S]:
    """Decodes one event.

    :raises ClusterError: for an ERROR event, or Unreadable when the line is not an event
    """
    try:
        event = EVENT.decode(line)
    except BAD_JSON as error:
        raise Unreadable(f"A watch of {resource.name} sent data that is not an event: {error}") from error
    if event.type is EventType.ERROR:
        raise error_from(read_status(without_secrets(bytes(event.object))) or Status())
    if event.type is EventType.BOOKMARK:
        return ObjectChange(None, is_removed=False, resource_version=_version_of(event.object))
    decoded = decode_one(event.object, resource.struct)
    is_removed = event.type is EventType.DELETED
    if isinstance(decoded, Unread):
        return ObjectChange(None, is_removed, _version_of(event.object), unread=decoded)
    return ObjectChange(decoded, is_removed, decoded.resource_version)


def _set_read_timeout(response: urllib3.BaseHTTPResponse, seconds: float) -> None:
    """Sets the read timeout after the headers. Before them, a silent server is given up sooner."""
    # If the connection closes after this answer, urllib3 keeps the socket only here.
    sock = getattr(getattr(response, "_sock_shutdown", None), "__self__", None)
    if sock is not None:
        sock.settimeout(seconds)


def _version_of(raw: msgspec.Raw) -> str:
    """Returns the resource version. Blank: unreadable; the next event has one."""
    try:
        return BOOKMARK.decode(raw).metadata.resource_version
    except BAD_JSON:
        return ""
