"""Messages of a reflector to the queue: about objects, lists and the watch."""

import time
from collections import OrderedDict
from dataclasses import dataclass, field

from fleet.models import BookmarkState
from fleet.observer.mirror.rows import Columns
from kube import client
from kube.client.decoder import Unread
from kube.structs import Seen
from kube.structs.events import EventSeen


@dataclass(frozen=True)
class ListBegun:
    kind: str


@dataclass(frozen=True)
class ListPage:
    kind: str
    items: tuple[Seen, ...]
    resource_version: str
    is_last: bool
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True)
class Opened:
    """The server accepted the watch at our resource version, so the rows are right."""

    kind: str


@dataclass(frozen=True)
class Changed:
    kind: str
    object: Seen | None  # None: a bookmark, or an unreadable object
    is_gone: bool
    resource_version: str
    unread: Unread | None = None
    at: float = field(default_factory=time.monotonic)  # arrival time of its bytes


@dataclass(frozen=True)
class Failed:
    kind: str
    state: BookmarkState
    message: str


@dataclass(frozen=True)
class Broke:
    """The end of the list-watch: another cluster, or a bug."""

    kind: str
    error: Exception


Delta = ListBegun | ListPage | Opened | Changed | Failed | Broke


MOST = 1000  # objects; unclaimed ones are dropped, since most events concern objects that have no row
OF_ONE = 20


class Early:
    def __init__(self) -> None:
        self._waiting: OrderedDict[str, list[EventSeen]] = OrderedDict()

    def keep(self, seen: EventSeen) -> None:
        uid = seen.about.uid
        if not uid:
            return
        waiting = self._waiting.setdefault(uid, [])
        waiting.append(seen)
        del waiting[:-OF_ONE]
        while len(self._waiting) > MOST:
            self._waiting.popitem(last=False)

    def claim(self, uid: str) -> list[EventSeen]:
        """Returns and removes the events of this object."""
        return self._waiting.pop(uid, [])


class ForeignCluster(client.ClusterError):
    """Another cluster answers at the known address. Its objects must not become rows."""

    def __init__(self, sentence: str, *, foreign_uid: str, in_full: str = "") -> None:
        super().__init__(sentence, in_full=in_full)
        self.foreign_uid = foreign_uid


def make_sure(connection: client.Connection, *, name: str, uid: str) -> None:
    """Checks the identity.

    :raises ForeignCluster: when another cluster answers
    """
    found = client.kube_system_uid(connection)
    if found != uid:
        said = (
            f"is another cluster: its kube-system has the UID {found}, {name} has {uid}. None of its objects are "
            f"stored. If {name} was rebuilt, accept the new cluster; if not, correct the address."
        )
        in_full = f"The server at {connection.server} {said}"
        raise ForeignCluster(f"The server at its address {said}", foreign_uid=found[:64], in_full=in_full)


@dataclass(frozen=True)
class Pending:
    """The unwritten row of one object. `row` None: the object was removed."""

    row: Columns | None
    resource_version: str
    fingerprint: int
