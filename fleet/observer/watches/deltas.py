"""What a reflector puts into the queue: what became of an object, of a list, of the watch itself."""

import time
from dataclasses import dataclass, field

from fleet.models import BookmarkState
from kube.client.decoder import Unread
from kube.structs import Seen


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
