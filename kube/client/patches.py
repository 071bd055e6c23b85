"""JSON patches that test what was seen, so that a foreign change makes them fail. Pure."""

from collections.abc import Mapping
from typing import Any

from kube.structs import NodeSeen, Seen

Operation = dict[str, Any]
Patch = list[Operation]


def pointer(*parts: str) -> str:
    """A JSON pointer. Label keys have a slash in them, which is written ~1 (RFC 6901)."""
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


def metadata_patch(
    seen: Seen,
    *,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
) -> Patch:
    """What makes labels and annotations as wanted; None as a value takes the key away. Empty: they are so already."""
    changes = [
        *_entries(seen, "labels", seen.metadata.labels, labels or {}),
        *_entries(seen, "annotations", seen.metadata.annotations, annotations or {}),
    ]
    return [*same_object(seen), *changes] if changes else []


def node_patch(
    node: NodeSeen,
    *,
    labels: Mapping[str, str | None] | None = None,
    annotations: Mapping[str, str | None] | None = None,
    is_unschedulable: bool | None = None,
) -> Patch:
    """And whether it takes pods: what is so is only written over what nobody has written since. None: left as it is."""
    changes = metadata_patch(node, labels=labels, annotations=annotations)
    if is_unschedulable is None or is_unschedulable == node.is_unschedulable:
        return changes
    place = pointer("spec", "unschedulable")
    set_it, take_it = {"op": "add", "path": place, "value": True}, {"op": "remove", "path": place}
    return [*(changes or same_object(node)), *unchanged_since(node), set_it if is_unschedulable else take_it]


def field_patch(seen: Seen, path: tuple[str, ...], *, old: Any, new: Any) -> Patch:
    """Change one field of a spec. `old` None: it is not there yet."""
    place = pointer(*path)
    if old == new:
        return []
    if old is None:
        return [*same_object(seen), *unchanged_since(seen), {"op": "add", "path": place, "value": new}]
    act = {"op": "remove", "path": place} if new is None else {"op": "replace", "path": place, "value": new}
    return [*same_object(seen), {"op": "test", "path": place, "value": old}, act]


def same_object(seen: Seen) -> Patch:
    """A name may be another object by now: a node that left and came back is not the one we judged."""
    return [{"op": "test", "path": pointer("metadata", "uid"), "value": seen.uid}]


def unchanged_since(seen: Seen) -> Patch:
    """The only test for something that is not there: RFC 6902 has none for an absent member."""
    return [{"op": "test", "path": pointer("metadata", "resourceVersion"), "value": seen.resource_version}]


def _entries(seen: Seen, field: str, has: Mapping[str, str] | None, wanted: Mapping[str, str | None]) -> Patch:
    changes = {key: value for key, value in wanted.items() if (has or {}).get(key) != value}
    added = {key: value for key, value in changes.items() if key not in (has or {})}
    if added and not has:
        # No member to add a key to: the whole map is new. (An empty one is left out by the server, too.)
        return [*unchanged_since(seen), {"op": "add", "path": pointer("metadata", field), "value": added}]
    patch = unchanged_since(seen) if added else []
    for key, value in sorted(changes.items()):
        place = pointer("metadata", field, key)
        if key not in added:
            patch.append({"op": "test", "path": place, "value": (has or {})[key]})
        patch.append({"op": "remove", "path": place} if value is None else {"op": "add", "path": place, "value": value})
    return patch
