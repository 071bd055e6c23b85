"""The queue of unwritten changes, in memory, for one thread."""

from dataclasses import replace
from datetime import datetime

import structlog

from fleet.models import BookmarkState
from fleet.observer.mirror.diff import fingerprint, likeness
from fleet.observer.mirror.kinds import CONFIGS, EVENTS_ABOUT, KINDS, Kind
from fleet.observer.mirror.memory import UNREADABLE, Memory
from fleet.observer.mirror.rows import Columns
from fleet.observer.mirror.watch_scope import WatchScope
from fleet.observer.watches.deltas import Broke, Changed, Delta, Early, Failed, ListBegun, ListPage, Opened, Pending
from fleet.observer.watches.watch_cursor import WatchCursor
from kube.client.decoder import Unread
from kube.resources import DAEMON_SETS, EVENTS, NODES
from kube.structs import ClusterPolicySeen, NodeSeen, Seen
from kube.structs.events import EventSeen

SELECTING = (NODES.name, DAEMON_SETS.name)
LISTED_AGAIN = {
    name: [other.name for other in KINDS.values() if name in other.after and other.is_listed_again]
    for name in SELECTING
}  # kinds whose objects they select

log = structlog.get_logger(__name__)


class DeltaQueue:
    """A queue that merges changes by object: only the last of ten changes of a node is written."""

    def __init__(self, cursors: dict[str, WatchCursor], scope: WatchScope, memory: Memory) -> None:
        self.cursors = cursors
        self.scope = scope
        scope.is_mirrored = self._is_mirrored
        self.memory = memory
        self.pending: dict[str, dict[str, Pending]] = {part.name: {} for name in cursors for part in KINDS[name].parts}
        self._early = Early()

    @property
    def size(self) -> int:
        return sum(map(len, self.pending.values()))

    @property
    def has_news(self) -> bool:
        return bool(self.size) or any(one.is_urgent or one.is_list_whole for one in self.cursors.values())

    @property
    def is_deaf(self) -> bool:
        """Tells whether no kind is updated or listed any more, for other reasons than permissions."""
        cursors = self.cursors.values()
        is_live = any(one.state is BookmarkState.WATCHING or one.is_worth_waiting_for for one in cursors)
        return not is_live and any(one.state is BookmarkState.FAILING for one in cursors)

    def absorb(self, delta: Delta, *, now: datetime) -> None:
        cursor = self.cursors[delta.kind]
        match delta:
            case Changed():
                self._merge(delta, cursor, now=now)
            case ListPage():
                self._take_page(delta, cursor)
            case ListBegun():
                self._drop_pending(delta.kind)  # the list contains newer data
                cursor.begin_list(now=now)
            case Opened():
                cursor.record_update(now=now)
            case Failed():
                if cursor.fail(delta.state, delta.message, now=now):
                    self._drop_pending(delta.kind)
            case Broke():
                raise delta.error

    def _merge(self, delta: Changed, cursor: WatchCursor, *, now: datetime) -> None:
        there = ""  # UID of the object with a row
        if isinstance(delta.object, NodeSeen) and not delta.is_gone:
            self._merge_node(delta.object)
            there = delta.object.uid
        elif delta.object is not None:
            is_kept = self._note(KINDS[delta.kind], delta.object, is_gone=delta.is_gone)
            there = delta.object.uid if is_kept and not delta.is_gone else ""
        if delta.unread is not None:
            self._note_unread(delta, delta.unread, cursor)
            there = "" if delta.is_gone else delta.unread.uid
        if there and cursor.is_list_whole:
            cursor.listed_uids.add(there)  # it came back after the list, so the list does not have it
        cursor.resource_version = delta.resource_version
        cursor.record_update(now=now)

    def _merge_node(self, seen: NodeSeen) -> None:
        """Handles a node change; most are heartbeats, for which no row is built."""
        kind, looks_like = KINDS[NODES.name], likeness(seen)
        written, waiting = self.memory.of(kind.name), self.pending[kind.name]
        is_same = self.memory.likenesses.get(seen.uid) == (looks_like, written.get(seen.uid))
        if is_same and seen.uid not in waiting:
            return
        self._note(kind, seen, is_gone=False)
        row = waiting[seen.uid].fingerprint if seen.uid in waiting else written.get(seen.uid, UNREADABLE)
        if row != UNREADABLE:
            self.memory.likenesses[seen.uid] = (looks_like, row)

    def _take_page(self, delta: ListPage, cursor: WatchCursor) -> None:
        kind = KINDS[delta.kind]
        for seen in delta.items:
            if self._note(kind, seen, is_gone=False):
                cursor.listed_uids.add(seen.uid)
        for unread in delta.unread:
            cursor.listed_uids.add(unread.uid)
            self._cannot_read(kind, unread)
        if delta.is_last:
            cursor.complete_list(delta.resource_version)

    def _note_unread(self, delta: Changed, unread: Unread, cursor: WatchCursor) -> None:
        if not delta.is_gone:
            self._cannot_read(KINDS[delta.kind], unread)
        elif unread.uid:
            cursor.can_read(unread.uid)
            for part in KINDS[delta.kind].parts:
                self.pending[part.name][unread.uid] = Pending(None, delta.resource_version, 0)

    def _note(self, kind: Kind, seen: Seen, *, is_gone: bool) -> bool:
        try:
            row = kind.row(seen, self.scope)
            has_rest = row is None and not is_gone and self._note_rest(kind, seen)
        except Exception as error:
            # Any failure on one object must not block the others.
            reason = f"Quarterdeck fails on the object ({type(error).__name__}: {error})"
            if self._cannot_read(kind, Unread.of(seen.uid, seen.name, reason)):
                log.exception("an object has no row", kind=kind.name, object=seen.name)
            return True
        if kind.rest and not has_rest:
            self._forget(kind.rest, seen)
        if row is None and not self._is_known(kind, seen.uid):
            if isinstance(seen, EventSeen) and not is_gone:
                self._early.keep(seen)
            return has_rest
        if is_gone or row is None:
            self.pending[kind.name][seen.uid] = Pending(None, seen.resource_version, 0)
            self.cursors[kind.name].can_read(seen.uid)
        else:
            self._note_row(kind, seen, row)
        self._update_scope(kind, seen, row, is_gone=is_gone)
        if kind.name in EVENTS_ABOUT:
            for event in self._early.claim(seen.uid):
                self._note(KINDS[EVENTS.name], event, is_gone=False)
        return row is not None or has_rest

    def _note_rest(self, kind: Kind, seen: Seen) -> bool:
        """Stores a reduced row for an object without a row of this kind. Returns whether there is one."""
        row = kind.rest.row(seen, self.scope) if kind.rest else None
        if kind.rest is not None and row is not None:
            self._note_row(kind.rest, seen, row)
        return row is not None

    def _forget(self, kind: Kind, seen: Seen) -> None:
        if self._is_known(kind, seen.uid):
            self.pending[kind.name][seen.uid] = Pending(None, seen.resource_version, 0)

    def _is_known(self, kind: Kind, uid: str) -> bool:
        return uid in self.memory.of(kind.name) or uid in self.pending[kind.name]

    def _drop_pending(self, kind: str) -> None:
        for part in KINDS[kind].parts:
            self.pending[part.name].clear()

    def _cannot_read(self, kind: Kind, unread: Unread) -> bool:
        """Records an unreadable object. Returns whether that is new."""
        if unread.uid:
            self.memory.of(kind.name)[unread.uid] = UNREADABLE
            waiting = self.pending[kind.name]
            if unread.uid in waiting:  # its earlier version is written, but is outdated
                waiting[unread.uid] = replace(waiting[unread.uid], fingerprint=UNREADABLE)
        return self.cursors[kind.name].cannot_read(unread)

    def _note_row(self, kind: Kind, seen: Seen, row: Columns) -> None:
        mark = fingerprint(row)
        waiting = self.pending[kind.name]
        if seen.uid in waiting or self.memory.of(kind.name).get(seen.uid) != mark:
            waiting[seen.uid] = Pending(row, seen.resource_version, mark)
            self.cursors[kind.resource.name].can_read(seen.uid)

    def _update_scope(self, kind: Kind, seen: Seen, row: Columns | None, *, is_gone: bool) -> None:
        """Updates the scope: nodes and operands select pods, a ClusterPolicy selects ConfigMaps."""
        if row is None:
            return
        if kind is KINDS[NODES.name]:
            self._mark(self.scope.gpu_nodes, row["name"], kind, is_in=row["is_gpu_node"] and not is_gone)
        elif kind is KINDS[DAEMON_SETS.name] and not is_gone:
            self._mark(self.scope.operator_namespaces, row["namespace"], kind, is_in=True)
            if row["owner_kind"] == "ClusterPolicy":
                self.scope.policy_namespace = row["namespace"]
        elif isinstance(seen, ClusterPolicySeen):
            self._follow_policy(seen, row, is_gone=is_gone)

    def _follow_policy(self, seen: ClusterPolicySeen, row: Columns, *, is_gone: bool) -> None:
        self.scope.policy_namespace = seen.namespace or self.scope.policy_namespace
        said = row | {"sharing_config": "", "mig_config": ""} if is_gone else row
        for purpose in self.scope.follow_policy(said):
            self.cursors[CONFIGS[purpose].name].outgrow()

    def _mark(self, names: set[str], name: str, kind: Kind, *, is_in: bool) -> None:
        if not is_in:
            names.discard(name)
        elif name not in names:
            names.add(name)
            # Pods that existed before and were not stored then.
            for other in LISTED_AGAIN[kind.name]:
                cursor = self.cursors[other]
                if (cursor.listed_at is not None or cursor.is_listing) and not cursor.is_outgrown:
                    cursor.outgrow()

    def _is_mirrored(self, uid: str) -> bool:
        return any(uid in self.memory.of(name) or uid in self.pending[name] for name in EVENTS_ABOUT)
