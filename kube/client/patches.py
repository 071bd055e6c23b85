"""JSON patches with tests of the observed values, so that a change by others makes them fail. Pure."""

from collections.abc import Mapping
from typing import Any

from kube.structs import NodeSeen, Seen, Taint

PatchOperation = dict[str, Any]
Patch = list[PatchOperation]


def pointer(*parts: str) -> str:
    """Returns a JSON pointer. The slash in a label key is escaped as ~1 (RFC 6901)."""
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


def metadata_patch(
    observed: Seen,
    *,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
) -> Patch:
    """Returns the patch that sets labels and annotations; the value None removes a key. Empty: no change is needed."""
    changes = [
        *_entries(observed, "labels", observed.metadata.labels, labels or {}),
        *_entries(observed, "annotations", observed.metadata.annotations, annotations or {}),
    ]
    return [*same_object(observed), *changes] if changes else []


def node_patch(
    node: NodeSeen,
    *,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
    is_unschedulable: bool | None = None,
) -> Patch:
    """Returns a patch that may also cordon or uncordon the node. `is_unschedulable` None: unchanged."""
    changes = metadata_patch(node, labels=labels, annotations=annotations)
    if is_unschedulable is None or is_unschedulable == node.is_unschedulable:
        return changes
    path = pointer("spec", "unschedulable")
    cordon, uncordon = {"op": "add", "path": path, "value": True}, {"op": "remove", "path": path}
    return [*(changes or same_object(node)), *unchanged_since(node), cordon if is_unschedulable else uncordon]


def taint_patch(
    node: NodeSeen, taint: Taint, *, is_on: bool = True, annotations: Mapping[str, str | None] | None = None
) -> Patch:
    """Returns the patch that adds a taint, or removes each of its key. Other taints keep all of their fields."""
    changes = metadata_patch(node, annotations=annotations) or same_object(node)
    value = {"key": taint.key, "value": taint.value, "effect": taint.effect}
    taints = node.spec.taints or ()
    path = pointer("spec", "taints")
    if not is_on:
        places = [number for number, each in enumerate(taints) if each.key == taint.key]
        edits: Patch = [{"op": "remove", "path": f"{path}/{number}"} for number in reversed(places)]
    elif taints:
        edits = [{"op": "add", "path": f"{path}/-", "value": value}]
    else:
        edits = [{"op": "add", "path": path, "value": [value]}]
    return [*changes, *unchanged_since(node), *edits]


def field_patch(observed: Seen, path: tuple[str, ...], *, old: Any, new: Any) -> Patch:
    """Returns the patch that changes one field of a spec. `old` None: the field does not exist yet."""
    location = pointer(*path)
    if old == new:
        return []
    if old is None:
        return [*same_object(observed), *unchanged_since(observed), {"op": "add", "path": location, "value": new}]
    operation = {"op": "remove", "path": location} if new is None else {"op": "replace", "path": location, "value": new}
    return [*same_object(observed), {"op": "test", "path": location, "value": old}, operation]


def same_object(observed: Seen) -> Patch:
    """Returns the test of the UID: a node that was deleted and recreated has the same name."""
    return [{"op": "test", "path": pointer("metadata", "uid"), "value": observed.uid}]


def unchanged_since(observed: Seen) -> Patch:
    """Returns the test of the resource version, the only test for a missing member (RFC 6902 has none)."""
    return [{"op": "test", "path": pointer("metadata", "resourceVersion"), "value": observed.resource_version}]


def _entries(observed: Seen, field: str, has: Mapping[str, str] | None, wanted: Mapping[str, str | None]) -> Patch:
    changes = {key: value for key, value in wanted.items() if (has or {}).get(key) != value}
    added = {key: value for key, value in changes.items() if key not in (has or {})}
    if added and not has:
        # Without an existing map there is nothing to add a key to. The server drops an empty map, too.
        return [*unchanged_since(observed), {"op": "add", "path": pointer("metadata", field), "value": added}]
    patch = unchanged_since(observed) if added else []
    for key, value in sorted(changes.items()):
        location = pointer("metadata", field, key)
        if key not in added:
            patch.append({"op": "test", "path": location, "value": (has or {})[key]})
        removal, addition = {"op": "remove", "path": location}, {"op": "add", "path": location, "value": value}
        patch.append(removal if value is None else addition)
    return patch
