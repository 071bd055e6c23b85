"""Selectors and namespaces as one test on an object."""

from collections.abc import Mapping
from typing import Any

from simulator import fields, selectors
from simulator.kinds import Kind
from simulator.refusals import bad_request
from simulator.shelf import Matches


def matcher(kind: Kind, label_selector: str, field_selector: str) -> Matches | None:
    """:raises Refused: 400 for a selector that cannot be read."""
    try:
        by_label = selectors.parse(label_selector) if label_selector else None
    except selectors.SelectorError as error:
        raise bad_request(str(error)) from error
    by_field = fields.parse(kind, field_selector) if field_selector else None
    if by_label is None and by_field is None:
        return None

    def matches(obj: Mapping[str, Any]) -> bool:
        if by_label is not None and not by_label.matches(obj["metadata"].get("labels") or {}):
            return False
        return by_field is None or by_field.matches(obj)

    return matches


def within(namespace: str, matches: Matches | None) -> Matches | None:
    if not namespace:
        return matches

    def is_within(obj: Mapping[str, Any]) -> bool:
        return obj["metadata"].get("namespace") == namespace and (matches is None or matches(obj))

    return is_within
