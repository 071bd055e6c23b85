"""RFC 6902 as the API server applies it: all operations or none."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


class PatchError(ValueError):
    """A `test` did not hold or a path is not there."""


def apply(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """:raises PatchError: and nothing has changed."""
    for operation in operations:
        act = OPERATIONS.get(operation.get("op", ""))
        if act is None:
            raise PatchError(f"unexpected kind: {operation.get('op')}")
        if not isinstance(operation.get("path"), str) or not isinstance(operation.get("from", ""), str):
            raise PatchError("missing path")
        document = act(document, operation)
    return document


def pointer(text: str) -> list[str]:
    if text == "":
        return []
    if not text.startswith("/"):
        raise PatchError(f"a JSON pointer starts with '/': {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text[1:].split("/")]


def look_up(document: Any, path: Sequence[str]) -> Any:
    for part in path:
        if isinstance(document, Mapping) and part in document:
            document = document[part]
        elif isinstance(document, list):
            document = document[_index(document, part)]
        else:
            raise PatchError(f"no such path: /{'/'.join(path)}")
    return document


def _index(array: list[Any], part: str, *, past_end: bool = False) -> int:
    if part == "-" and past_end:
        return len(array)
    if not part.isdigit() or int(part) >= len(array) + past_end:
        raise PatchError(f"index {part!r} is outside of an array of {len(array)}")
    return int(part)


def _changed(document: Any, path: Sequence[str], change: Callable[[Any, str], None]) -> Any:
    """A copy in which `change` was called on the container of the last part."""
    if not isinstance(document, Mapping | list):
        raise PatchError(f"nothing to enter at {path[0]!r}")
    copy: Any = list(document) if isinstance(document, list) else dict(document)
    if len(path) == 1:
        change(copy, path[0])
        return copy
    part: Any = _index(copy, path[0]) if isinstance(copy, list) else path[0]
    if isinstance(copy, dict) and part not in copy:
        raise PatchError(f"no such path: {part!r}")
    copy[part] = _changed(copy[part], path[1:], change)
    return copy


def _add(document: Any, operation: Mapping[str, Any]) -> Any:
    path, value = pointer(operation["path"]), operation.get("value")
    if not path:
        return value

    def put(container: Any, part: str) -> None:
        if isinstance(container, list):
            container.insert(_index(container, part, past_end=True), value)
        else:
            container[part] = value

    return _changed(document, path, put)


def _remove(document: Any, operation: Mapping[str, Any]) -> Any:
    path = pointer(operation["path"])
    look_up(document, path)

    def cut(container: Any, part: str) -> None:
        del container[_index(container, part) if isinstance(container, list) else part]

    return _changed(document, path, cut)


def _replace(document: Any, operation: Mapping[str, Any]) -> Any:
    path, value = pointer(operation["path"]), operation.get("value")
    look_up(document, path)
    if not path:
        return value

    def swap(container: Any, part: str) -> None:
        container[_index(container, part) if isinstance(container, list) else part] = value

    return _changed(document, path, swap)


def _test(document: Any, operation: Mapping[str, Any]) -> Any:
    path, expected = pointer(operation["path"]), operation.get("value")
    try:
        found = look_up(document, path)
    except PatchError:
        # The API server's library lets an absent member equal null.
        if expected is None and "value" in operation:
            return document
        raise
    if not same(found, expected):
        raise PatchError(f"testing value {operation['path']} failed")
    return document


def same(one: Any, other: Any) -> bool:
    """JSON equality: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def _copy(document: Any, operation: Mapping[str, Any]) -> Any:
    value = look_up(document, pointer(operation.get("from", "?")))
    return _add(document, {"path": operation["path"], "value": value})


def _move(document: Any, operation: Mapping[str, Any]) -> Any:
    value = look_up(document, pointer(operation.get("from", "?")))
    without = _remove(document, {"path": operation["from"]})
    return _add(without, {"path": operation["path"], "value": value})


OPERATIONS: Mapping[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "test": _test,
    "copy": _copy,
    "move": _move,
}
