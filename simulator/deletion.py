"""How objects go: at once, after a grace, or when the last finalizer is gone."""

from datetime import timedelta
from typing import Any

from simulator.clock import stamp
from simulator.etcd import Etcd
from simulator.kinds import NAMESPACE, POD, Kind
from simulator.refusals import conflict, forbidden

Obj = dict[str, Any]
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
PROPAGATION_FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def delete(store: Etcd, kind: Kind, old: Obj, *, grace_s: int | None, propagation: str | None) -> Obj:
    if kind.shelf == NAMESPACE.shelf and old["metadata"]["name"] in IMMORTAL:
        raise forbidden(NAMESPACE, old["metadata"]["name"], "this namespace may not be deleted")
    grace_s = _grace_s(old, grace_s) if kind is POD or kind.shelf == POD.shelf else 0
    finalizers = _finalizers(old, propagation)
    metadata = old["metadata"]
    if grace_s == 0 and not finalizers and kind.shelf != NAMESPACE.shelf:
        return remove(store, kind, old)
    if "deletionTimestamp" in metadata and grace_s >= metadata.get("deletionGracePeriodSeconds", 0):
        return old
    due = stamp(store.clock.now() + timedelta(seconds=grace_s))
    marked = {**metadata, "deletionTimestamp": due, "deletionGracePeriodSeconds": grace_s}
    if finalizers:
        marked["finalizers"] = finalizers
    if kind.has_generation and "deletionTimestamp" not in metadata:
        marked["generation"] = metadata.get("generation", 0) + 1
    if kind.shelf == NAMESPACE.shelf:
        return _close_namespace(store, {**old, "metadata": marked})
    return store.mark(kind, {**old, "metadata": marked})


def require(kind: Kind, obj: Obj, *, uid: str | None, resource_version: str | None) -> None:
    """:raises Refused: 409 when it is another object, or another version of it, than the client meant."""
    held = obj["metadata"]
    if uid is not None and uid != held["uid"]:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({held['uid']}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(kind, held["name"], why)
    if resource_version is not None and resource_version != held["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({resource_version}) does not match the ResourceVersion in "
            f"record ({held['resourceVersion']}). The object might have been modified"
        )
        raise conflict(kind, held["name"], why)


def _grace_s(pod: Obj, asked: int | None) -> int:
    """A pod that never ran on a node, or has ended, has nothing to wind up."""
    if not pod["spec"].get("nodeName") or (pod.get("status") or {}).get("phase") in {"Succeeded", "Failed"}:
        return 0
    given: int = asked if asked is not None else pod["spec"].get("terminationGracePeriodSeconds", 30)
    return max(given, 0)


def _finalizers(obj: Obj, propagation: str | None) -> list[str]:
    held = list(obj["metadata"].get("finalizers") or [])
    added = PROPAGATION_FINALIZERS.get(propagation or "")
    return held if added is None or added in held else [*held, added]


def is_due(obj: Obj) -> bool:
    """Whether nothing holds an object that is being deleted any more."""
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
        return False
    if obj["kind"] == NAMESPACE.name and (obj.get("spec") or {}).get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _close_namespace(store: Etcd, namespace: Obj) -> Obj:
    """Namespaces empty themselves: here at once, in a cluster by a controller of its own."""
    status = {**(namespace.get("status") or {}), "phase": "Terminating"}
    marked = store.mark(NAMESPACE, {**namespace, "status": status})
    name = namespace["metadata"]["name"]
    for shelf in list(store.shelves.values()):
        if shelf.kind.namespaced:
            for record in store.page(shelf.kind, name).records:
                delete(store, shelf.kind, record.obj, grace_s=None, propagation=None)
    return _drop_if_empty(store, name) or marked


def _drop_if_empty(store: Etcd, name: str) -> Obj | None:
    record = store.shelf(NAMESPACE).records.get(name)
    if record is None or "deletionTimestamp" not in record.obj["metadata"]:
        return None
    for shelf in store.shelves.values():
        if shelf.kind.namespaced and store.page(shelf.kind, name, limit=1).records:
            return None
    if record.obj["metadata"].get("finalizers"):
        return None
    return remove(store, NAMESPACE, {**record.obj, "spec": {}})


def remove(store: Etcd, kind: Kind, last: Obj) -> Obj:
    """Nothing holds the object any more: drop it, and a namespace that only waited for it."""
    gone = store.drop(kind, last)
    namespace = gone["metadata"].get("namespace")
    if namespace:
        _drop_if_empty(store, namespace)
    return gone
