"""What an observer would have written of the cluster, by the product's rules; and the database, kept and put back."""

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import connection

from fleet.allocation.devices import offered_on
from fleet.models import Bookmark, Cluster, Node, Pool
from fleet.observer.mirror.diff import remember
from fleet.observer.mirror.dra_offers import merge_offers, unfolded
from fleet.observer.mirror.kinds import KINDS, Kind
from fleet.observer.mirror.rows import Columns
from fleet.observer.mirror.watch_scope import WatchScope
from kube import selectors
from kube.client.decoder import decode
from simulator.events import Record
from simulator.store import Store

SLICES = "resourceslices.resource.k8s.io"
JUDGED = (
    "nodes",
    "daemonsets.apps",
    "controllerrevisions.apps",
    "nvidiadrivers.nvidia.com",
    "clusterpolicies.nvidia.com",
    "pods",
    SLICES,
)
Seen = dict[str, tuple[str, int]]  # uid → kind and resource version of its row


class Rows:
    """The rows of one cluster, as late as they are."""

    def __init__(self, store: Store, cluster: Cluster) -> None:
        self.store, self.cluster = store, cluster
        self.seen: Seen = {}

    def look(self, *, now: datetime, upto: float = 1.0) -> bool:
        """Make rows of what changed; of less than all of it, what came first. Whether there was anything."""
        found = [(kind, record) for name in JUDGED for kind, record in self._records(KINDS[name])]
        changed = [(kind, one) for kind, one in found if self.seen.get(_uid(one)) != (kind.name, one.version)]
        changed.sort(key=lambda each: each[1].version)
        there = {_uid(one) for _, one in found}
        gone = {uid: kind for uid, (kind, _) in self.seen.items() if uid not in there}
        kept = changed[: round(len(changed) * upto)] if upto < 1 else changed
        for kind, record in kept:
            self._write(kind, record, now=now)
        if upto == 1:
            for uid, name in gone.items():
                rows = KINDS[name].rows_of(self.cluster.pk).filter(uid=uid)
                on = [one.node_name for one in rows] if name == SLICES else ()
                rows.delete()
                del self.seen[uid]
                self._offer_anew(on)
            Bookmark.objects.filter(cluster=self.cluster).update(last_seen_at=now, listed_at=now)
        if any(kind.name == "nodes" for kind, _ in kept):
            self._fill_pools()
        return bool(kept or gone)

    def _records(self, kind: Kind) -> list[tuple[Kind, Record]]:
        resource = kind.resource
        shelf = self.store.shelf(self.store.find_kind(resource.group, resource.version, resource.plural))
        if kind.name != "pods":
            return [(kind, one) for one in shelf.records.values()]
        return [(kind, one) for key, one in shelf.records.items() if key.startswith("gpu-operator/")]

    def _write(self, kind: Kind, record: Record, *, now: datetime) -> None:
        uid = _uid(record)
        self.seen[uid] = (kind.name, record.version)
        scope = WatchScope(gpu_nodes=self._gpu_nodes(), operator_namespaces={"gpu-operator"})
        row = kind.row(decode(record.json, kind.resource.struct), scope)
        if row is None:
            return
        if kind.name == "nodes" and any(name == SLICES for name, _ in self.seen.values()):
            row = self._folded(row)
        if kind.name == "nodes":  # such as when it booted
            row = remember(Node.objects.filter(cluster=self.cluster, uid=uid).values().first(), row, now=now)
        given = row | {"resource_version": str(record.version), "changed_at": now}
        names = {column.name for column in kind.model._meta.get_fields()}  # noqa: SLF001
        columns = {name: value for name, value in given.items() if name in names}
        rows = kind.rows_of(self.cluster.pk).filter(uid=uid)
        if not rows.update(**columns):
            kind.model.objects.create(cluster=self.cluster, uid=uid, **columns)
        if kind.name == SLICES:
            self._offer_anew([columns["node_name"]])

    def _offer_anew(self, nodes: Iterable[str]) -> None:
        """As slices now tell of a node that was seen before."""
        for name in nodes:
            for old in Node.objects.filter(cluster=self.cluster, name=name).values():
                folded = self._folded(unfolded(old))
                changed = {column: value for column, value in folded.items() if value != old.get(column, value)}
                Node.objects.filter(pk=old["id"]).update(**changed)

    def _folded(self, row: Columns) -> Columns:
        return merge_offers(row, offered_on(self.cluster.pk, [row["name"]]).get(row["name"]))

    def _gpu_nodes(self) -> set[str]:
        return {key for key in self.store.shelf(self.store.find_kind("", "v1", "nodes")).records if "gpu" in key}

    def _fill_pools(self) -> None:
        nodes = list(Node.objects.filter(cluster=self.cluster).only("labels").order_by())
        for pool in Pool.objects.filter(cluster=self.cluster).only("selector").order_by():
            selector = selectors.parse(pool.selector)
            has = set(Pool.nodes.through.objects.filter(pool=pool).values_list("node_id", flat=True))
            if has != (wanted := {node.pk for node in nodes if selector.matches(node.labels)}):
                pool.nodes.set(wanted)


def _uid(record: Record) -> str:
    return str(record.obj["metadata"]["uid"])


def keep_database() -> bytes:
    return _raw().serialize()


def put_database_back(kept: bytes) -> None:
    _raw().deserialize(kept)


def raw_rows(asked: tuple[str, tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """What a query finds, as it is stored."""
    sql, params = asked
    return _raw().execute(sql.replace("%s", "?"), params).fetchall()


def _raw() -> sqlite3.Connection:
    connection.ensure_connection()
    return connection.connection
