"""What a reflector puts into the queue: what became of an object, of a list, of the watch itself."""

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
    """The server took up the watch from where we stood: what our rows say holds."""

    kind: str


@dataclass(frozen=True)
class Changed:
    kind: str
    object: Seen | None  # None: a bookmark, or one that cannot be read
    is_gone: bool
    resource_version: str
    unread: Unread | None = None
    at: float = field(default_factory=time.monotonic)  # when its bytes came, or could have


@dataclass(frozen=True)
class Failed:
    kind: str
    state: BookmarkState
    message: str


@dataclass(frozen=True)
class Broke:
    """The list-watch ends with it instead of going on without a kind: another cluster, or a bug of ours."""

    kind: str
    error: Exception


Delta = ListBegun | ListPage | Opened | Changed | Failed | Broke


MOST = 1000  # objects; what nobody claims is pushed out, since most events are about nothing that we keep
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
        """Those about this object, once."""
        return self._waiting.pop(uid, [])


class ForeignCluster(client.ClusterError):
    """Another cluster answers at the address of the one we know. Its objects must not become our rows."""

    def __init__(self, sentence: str, *, foreign_uid: str, in_full: str = "") -> None:
        super().__init__(sentence, in_full=in_full)
        self.foreign_uid = foreign_uid


def make_sure(connection: client.Connection, *, name: str, uid: str) -> None:
    """:raises ForeignCluster: when what answers is not the cluster of this UID"""
    found = client.kube_system_uid(connection)
    if found != uid:
        said = (
            f"is another cluster: its kube-system has the UID {found}, {name} has {uid}. Nothing of it is taken over. "
            f"If {name} was rebuilt, accept it; if not, correct the address."
        )
        in_full = f"What answers at {connection.server} {said}"
        raise ForeignCluster(f"What answers in its place {said}", foreign_uid=found[:64], in_full=in_full)


@dataclass(frozen=True)
class Pending:
    """`row` None: the object is gone."""

    row: Columns | None
    resource_version: str
    fingerprint: int
