"""The API server's rules around its etcd: what clients may create, change, delete, evict and bind."""

from typing import Any

from simulator import definitions, deletion, eviction, managed_fields, patches, rules, schema, shapes
from simulator.clock import Clock
from simulator.defaults import filled
from simulator.etcd import Etcd, Obj
from simulator.kinds import BUILT_IN, DEFINITION, NAMESPACE, POD, Kind
from simulator.refusals import Refused, already_exists, bad_request, conflict, namespace_ends
from simulator.validation import check

__all__ = ["Refused", "Store"]


class Store(Etcd):
    def __init__(self, clock: Clock | None = None, kinds: tuple[Kind, ...] = BUILT_IN) -> None:
        super().__init__(clock, kinds)
        for name in ("default", "kube-node-lease", "kube-public", "kube-system"):
            self.create(NAMESPACE, {"metadata": {"name": name}})

    def create(self, kind: Kind, obj: Obj, namespace: str = "", *, dry_run: bool = False) -> Obj:
        with self.lock:
            self._open_namespace(kind, obj, namespace)
            return self._add(kind, obj, namespace, keep_status=False, dry_run=dry_run)

    def seed(self, kind: Kind, obj: Obj, namespace: str = "") -> Obj:
        """Place an object that was there before anybody looked: its status, uid and age are kept."""
        with self.lock:
            self._open_namespace(kind, obj, namespace)
            return self._add(kind, obj, namespace, keep_status=True, dry_run=False)

    def _open_namespace(self, kind: Kind, obj: Obj, namespace: str) -> None:
        if not kind.namespaced:
            return
        if not namespace:
            raise bad_request("an empty namespace may not be set during creation")
        self._check_namespace(kind, rules.name_of(obj), namespace)

    def _check_namespace(self, kind: Kind, name: str, namespace: str) -> None:
        """:raises Refused: when the namespace ends (kubernetes, plugin/pkg/admission/namespace/lifecycle)"""
        if self.get(NAMESPACE, namespace)["metadata"].get("deletionTimestamp"):
            raise namespace_ends(kind, name, namespace)

    def _add(self, kind: Kind, obj: Obj, namespace: str, *, keep_status: bool, dry_run: bool) -> Obj:
        shapes.check(kind, obj)
        now = self.clock.now()
        new = self._filled(kind, rules.born(kind, obj, namespace=namespace, now=now, keep_status=keep_status))
        rules.check_metadata(kind, new)
        check(self, kind, new, None)
        name = new["metadata"]["name"]
        if (f"{namespace}/{name}" if kind.namespaced else name) in self.shelf(kind).records:
            raise already_exists(kind, name)
        if kind is DEFINITION:
            new = definitions.established(new, now)
        return self._keep(kind, new, dry_run=dry_run)

    def update(
        self,
        kind: Kind,
        name: str,
        obj: Obj,
        namespace: str = "",
        subresource: str = "",
        *,
        manager: str = "",
        dry_run: bool = False,
    ) -> Obj:
        """`manager`: who is to have set what changes; blank: nobody says."""
        with self.lock:
            shapes.check(kind, obj)
            old = self.get(kind, name, namespace)
            return self._revise(kind, old, obj, subresource=subresource, manager=manager, dry_run=dry_run)

    def patch(
        self,
        kind: Kind,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        how: str,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
    ) -> Obj:
        with self.lock:
            old = self.get(kind, name, namespace)
            new = patches.patched(kind, old, patch, how=how)
            shapes.check(kind, new, is_patched=True)
            return self._revise(kind, old, new, subresource=subresource, manager=manager, dry_run=dry_run)

    def _revise(self, kind: Kind, old: Obj, new: Obj, *, subresource: str, manager: str, dry_run: bool) -> Obj:
        revised = rules.revised(kind, old, new, subresource=subresource)
        revised = managed_fields.kept(kind, old, revised, manager, now=self.clock.now())
        if subresource != "status":
            revised = self._filled(kind, revised)
        if revised == old:
            return old
        rules.check_metadata(kind, revised, old)
        check(self, kind, revised, old)
        if deletion.is_due(revised):
            return revised if dry_run else deletion.remove(self, kind, revised)
        return self._keep(kind, revised, dry_run=dry_run)

    def _filled(self, kind: Kind, obj: Obj) -> Obj:
        if not kind.is_custom:
            return filled(kind, obj)
        record = self.shelf(DEFINITION).records.get(f"{kind.plural}.{kind.group}")
        of_version = definitions.schema_of(record.obj, kind.version) if record else {}
        return schema.pruned(of_version, obj) if of_version else obj

    def _keep(self, kind: Kind, obj: Obj, *, dry_run: bool) -> Obj:
        return obj if dry_run else self.mark(kind, obj)

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str = "",
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        dry_run: bool = False,
    ) -> Obj:
        with self.lock:
            old = self.get(kind, name, namespace)
            deletion.require(kind, old, uid=uid, resource_version=resource_version)
            return old if dry_run else deletion.delete(self, kind, old, grace_s=grace_s, propagation=propagation)

    def evict(
        self,
        pod_name: str,
        namespace: str,
        *,
        grace_s: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        dry_run: bool = False,
    ) -> None:
        with self.lock:
            self._check_namespace(POD, pod_name, namespace)
            pod = self.get(POD, pod_name, namespace)
            deletion.require(POD, pod, uid=uid, resource_version=resource_version)
            eviction.evict(self, pod, grace_s=grace_s, dry_run=dry_run)

    def bind(self, pod: str, namespace: str, node_name: str) -> None:
        with self.lock:
            held = self.get(POD, pod, namespace)
            if held["metadata"].get("deletionTimestamp"):
                raise conflict(POD, pod, f"pod {pod} is being deleted, cannot be assigned to a host")
            if held["spec"].get("nodeName"):
                raise conflict(POD, pod, f'pod {pod} is already assigned to node "{held["spec"]["nodeName"]}"')
            self.mark(POD, eviction.scheduled(held, node_name, self.clock.now()))
