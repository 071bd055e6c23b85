"""The three ways to change part of an object: each returns a new document that shares what it left alone."""

from typing import Any

from simulator.kinds import Kind
from simulator.patches import json_patch, merge_patch, strategic
from simulator.refusals import Refused, bad_request, unsupported_media

# What an API server says of any JSON patch that does not apply (a failed `test` among them); it does not say which.
NOT_APPLIED = "the server rejected our request due to an error in our request"
FOR_CUSTOM = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"


def patched(kind: Kind, old: dict[str, Any], patch: Any, *, how: str) -> Any:
    """:raises Refused: with the old document untouched."""
    match how:
        case "json":
            return _json(old, patch)
        case "merge":
            return merge_patch.apply(old, _mapping(patch))
        case "strategic":
            return _strategic(kind, old, _mapping(patch))
    raise unsupported_media(FOR_CUSTOM)


def _json(old: dict[str, Any], patch: Any) -> dict[str, Any]:
    if not isinstance(patch, list) or not all(isinstance(operation, dict) for operation in patch):
        raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    try:
        return _mapping(json_patch.apply(old, patch))
    except json_patch.PatchError as error:
        raise Refused(422, "Invalid", NOT_APPLIED) from error


def _strategic(kind: Kind, old: dict[str, Any], patch: dict[str, Any]) -> Any:
    if kind.is_custom:
        raise unsupported_media(FOR_CUSTOM)
    try:
        return strategic.apply(old, patch, kind=kind.name)
    except strategic.DirectiveError as error:
        raise bad_request(str(error)) from error


def _mapping(patch: Any) -> dict[str, Any]:
    if not isinstance(patch, dict):
        raise bad_request("json: cannot unmarshal into Go value of type map[string]interface {}")
    return patch
