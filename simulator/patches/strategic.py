"""Strategic merge: lists merge by key, with `$patch`, `$deleteFromPrimitiveList`, `$setElementOrder`, `$retainKeys`."""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.patches import merge_keys

PATCH = "$patch"
DELETE_VALUES = "$deleteFromPrimitiveList/"
ORDER = "$setElementOrder/"
RETAIN = "$retainKeys"


class DirectiveError(ValueError):
    pass


def apply(document: Any, patch: Mapping[str, Any], *, kind: str) -> Any:
    """:raises DirectiveError: where the API server answers 400 or 422."""
    directive = patch.get(PATCH, "merge")
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != PATCH}
    if directive == "delete":
        return {}
    if directive != "merge":
        raise DirectiveError(f"Unknown patch type found: {directive}")
    merged = _retained(dict(document) if isinstance(document, Mapping) else {}, patch)
    for key, value in patch.items():
        if not key.startswith("$"):
            _merge_member(merged, key, value, patch, kind)
    return _cut_and_order(merged, patch, kind)


def _retained(merged: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    kept = patch.get(RETAIN)
    return merged if kept is None else {key: value for key, value in merged.items() if key in kept}


def _merge_member(merged: dict[str, Any], key: str, value: Any, patch: Mapping[str, Any], kind: str) -> None:
    if value is None:
        merged.pop(key, None)
    elif isinstance(value, Mapping):
        merged[key] = apply(merged.get(key), value, kind=kind)
    elif isinstance(value, list):
        merged[key] = _merge_list(merged.get(key) or [], value, key, patch.get(ORDER + key), kind)
    else:
        merged[key] = value


def _merge_list(old: list[Any], new: list[Any], field: str, order: Sequence[Any] | None, kind: str) -> list[Any]:
    if field in merge_keys.SETS:
        merged = [*old, *(value for value in new if value not in old)]
        return _ordered(merged, order, lambda item: item)
    by = merge_keys.merge_key(kind, field)
    if by is None:
        return [item for item in new if not (isinstance(item, Mapping) and PATCH in item)]
    merged = _merge_keyed(old, new, by, kind)
    return _ordered(merged, [item.get(by) for item in order] if order is not None else None, lambda item: item.get(by))


def _merge_keyed(old: list[Any], new: list[Any], by: str, kind: str) -> list[Any]:
    if any(item.get(PATCH) == "replace" for item in new):
        return [item for item in new if item.get(PATCH) != "replace"]
    merged = list(old)
    for item in new:
        if by not in item:
            raise DirectiveError(f"map: {dict(item)} does not contain declared merge key: {by}")
        at = next((index for index, held in enumerate(merged) if held.get(by) == item[by]), None)
        if item.get(PATCH) == "delete":
            merged = [held for held in merged if held.get(by) != item[by]]
        elif at is None:
            merged.append(apply({}, item, kind=kind))
        else:
            merged[at] = apply(merged[at], item, kind=kind)
    return merged


def _cut_and_order(merged: dict[str, Any], patch: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Directives whose list is not itself a member of the patch still apply to the list they name."""
    for key, value in patch.items():
        if key.startswith(DELETE_VALUES):
            field = key.removeprefix(DELETE_VALUES)
            merged[field] = [item for item in merged.get(field) or [] if item not in value]
        field = key.removeprefix(ORDER)
        if key.startswith(ORDER) and field not in patch and field in merged:
            merged[field] = _merge_list(merged[field], [], field, value, kind)
    return merged


def _ordered(items: list[Any], order: Sequence[Any] | None, key_of: Any) -> list[Any]:
    """The given order for the items it names; those it does not name keep their place before the next named one."""
    if order is None:
        return items
    rank = {key: at for at, key in enumerate(order)}
    named = sorted((item for item in items if key_of(item) in rank), key=lambda item: rank[key_of(item)])
    upcoming = iter(named)
    return [next(upcoming) if key_of(item) in rank else item for item in items]
