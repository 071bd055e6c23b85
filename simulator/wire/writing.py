"""POST, PUT, PATCH and DELETE on objects and their status."""

from typing import Any

from simulator.kinds import NAMESPACE, POD, Kind
from simulator.managed_fields import manager_of
from simulator.matching import matcher
from simulator.refusals import Refused, bad_request, unsupported_media
from simulator.store import Store
from simulator.wire.answers import Answer, of_json, success
from simulator.wire.asks import Ask
from simulator.wire.openapi import strict
from simulator.wire.paths import Target

PATCH_FORMS = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
RETURNED = (POD.shelf, NAMESPACE.shelf)
"""Kinds whose deletion answers with the object; the others answer with a Status."""


def create(store: Store, ask: Ask, kind: Kind, target: Target) -> Answer:
    obj = ask.mapping()
    if is_strict(ask):
        strict.check(store, kind, obj)
    return of_json(store.create(kind, obj, target.namespace, dry_run=ask.is_dry_run), 201)


def update(store: Store, ask: Ask, kind: Kind, target: Target) -> Answer:
    obj = ask.mapping()
    if is_strict(ask):
        strict.check(store, kind, obj)
    new = store.update(
        kind,
        target.name,
        obj,
        target.namespace,
        target.subresource,
        manager=_manager(ask),
        dry_run=ask.is_dry_run,
    )
    return of_json(new)


def patch(store: Store, ask: Ask, kind: Kind, target: Target) -> Answer:
    how = PATCH_FORMS.get(ask.content_type)
    if how is None:
        raise unsupported_media(", ".join(PATCH_FORMS))
    wanted = ask.json()
    if is_strict(ask) and how != "json":
        strict.check(store, kind, wanted)
    changed = store.patch(
        kind,
        target.name,
        wanted,
        target.namespace,
        how=how,
        subresource=target.subresource,
        manager=_manager(ask),
        dry_run=ask.is_dry_run,
    )
    return of_json(changed)


def _manager(ask: Ask) -> str:
    return manager_of(ask.query.get("fieldManager", ""), ask.headers.get("user-agent", ""))


def delete(store: Store, ask: Ask, kind: Kind, target: Target) -> Answer:
    gone = store.delete(kind, target.name, target.namespace, **deletion_wishes(ask))
    is_held = target.name in _names(store, kind, target)
    if is_held or kind.shelf in RETURNED:
        return of_json(gone)
    return success(kind=kind, uid=gone["metadata"]["uid"], name=target.name)


def _names(store: Store, kind: Kind, target: Target) -> set[str]:
    try:
        return {store.get(kind, target.name, target.namespace)["metadata"]["name"]}
    except Refused:
        return set()


def delete_collection(store: Store, ask: Ask, kind: Kind, target: Target) -> Answer:
    matches = matcher(kind, ask.query.get("labelSelector", ""), ask.query.get("fieldSelector", ""))
    page = store.page(kind, target.namespace, matches=matches)
    wishes = deletion_wishes(ask)
    for record in page.records:
        metadata = record.obj["metadata"]
        store.delete(kind, metadata["name"], metadata.get("namespace", ""), **wishes)
    return success()


def deletion_wishes(ask: Ask, options: dict[str, Any] | None = None) -> dict[str, Any]:
    """DeleteOptions, from the body or else from the query."""
    asked = ask.options() if options is None else options
    grace = asked.get("gracePeriodSeconds", ask.query.get("gracePeriodSeconds"))
    preconditions = asked.get("preconditions") or {}
    orphans = asked.get("orphanDependents")
    return {
        "grace_s": _seconds(grace),
        "uid": preconditions.get("uid"),
        "resource_version": preconditions.get("resourceVersion"),
        "propagation": asked.get("propagationPolicy")
        or ask.query.get("propagationPolicy")
        or ("Orphan" if orphans else None),
        "dry_run": ask.is_dry_run or "All" in (asked.get("dryRun") or ()),
    }


def is_strict(ask: Ask) -> bool:
    return ask.query.get("fieldValidation") == "Strict"


def _seconds(text: Any) -> int | None:
    if text in (None, ""):
        return None
    if not str(text).lstrip("-").isdigit():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)
