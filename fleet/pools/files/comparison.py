"""The effect of importing a file, on pools and nodes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from edges.digests import digest
from fleet.models import Cluster, Pool
from fleet.pools.approval_rules import contradiction
from fleet.pools.changes import in_use
from fleet.pools.files.parser import KEYS, FileEntry
from fleet.pools.membership import Labels, MembershipPreview, PoolsAndNodes, preview


class FileChangeKind(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    UNCHANGED = "unchanged"
    REMOVED = "removed"
    KEPT = "kept"  # not in the file, and pruning was not requested


@dataclass(frozen=True)
class FileChange:
    what: FileChangeKind
    name: str
    pool: Pool | None  # None: to be created
    fields: Mapping[str, Any]  # written values; for a changed pool, only differences
    before: Mapping[str, Any]
    preview: MembershipPreview | None  # None: no node enters or leaves
    obstacle: str = ""  # why it is impossible; nothing is imported then

    @property
    def moves(self) -> list[tuple[str, Any, Any]]:
        return [(name, self.before.get(name), value) for name, value in self.fields.items()]


@dataclass(frozen=True)
class FileComparison:
    cluster: Cluster
    changes: Sequence[FileChange]

    @property
    def obstacles(self) -> list[str]:
        return [each.obstacle for each in self.changes if each.obstacle]

    @property
    def is_quiet(self) -> bool:
        return all(each.what in {FileChangeKind.UNCHANGED, FileChangeKind.KEPT} for each in self.changes)

    @property
    def numbers(self) -> dict[str, int]:
        return {what.value: sum(each.what is what for each in self.changes) for what in FileChangeKind}

    @property
    def fingerprint(self) -> str:
        """Returns a value that is equal for equal changes of the same pools and nodes."""
        lines = [
            (each.what.value, each.name, str(each.moves), each.preview.fingerprint if each.preview else "")
            for each in self.changes
        ]
        return digest(lines)[:16]


def compare(cluster: Cluster, entries: Sequence[FileEntry], *, prune: bool = False) -> FileComparison:
    """Compares a file with the pools. Four queries, and more for each pool to delete."""
    standing, labels = PoolsAndNodes.of(cluster), Labels(cluster)
    there = {pool.name: pool for pool in standing.pools.values()}
    show = partial(preview, cluster, standing=standing, labels=labels)
    named = {entry.name for entry in entries}
    changes = [_compare_entry(cluster, there.get(entry.name), entry, show) for entry in entries]
    changes += [_unwanted(pool, show, prune=prune) for name, pool in there.items() if name not in named]
    return FileComparison(cluster, changes)


def _compare_entry(
    cluster: Cluster, pool: Pool | None, entry: FileEntry, show: Callable[..., MembershipPreview]
) -> FileChange:
    if pool is None:
        shown = show(entry.fields["selector"])
        return FileChange(
            FileChangeKind.CREATED, entry.name, None, entry.fields, {}, shown, _contradiction(cluster, entry)
        )
    before = {key: getattr(pool, key) for key in KEYS}
    fields = {key: value for key, value in entry.fields.items() if value != before[key]}
    changed = show(fields["selector"], pool=pool) if "selector" in fields else None
    what = FileChangeKind.CHANGED if fields else FileChangeKind.UNCHANGED
    return FileChange(what, entry.name, pool, fields, before, changed, _contradiction(cluster, entry))


def _contradiction(cluster: Cluster, entry: FileEntry) -> str:
    return contradiction(cluster, Pool(**entry.fields))


def _unwanted(pool: Pool, show: Callable[..., MembershipPreview], *, prune: bool) -> FileChange:
    if not prune:
        return FileChange(FileChangeKind.KEPT, pool.name, pool, {}, {}, None)
    shown = show(None, pool=pool)
    return FileChange(FileChangeKind.REMOVED, pool.name, pool, {}, {}, shown, obstacle=in_use(pool))
