"""What may be a name, a label or an annotation, and the sentence the API server refuses the rest with."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from simulator.kinds import Kind
from simulator.refusals import Cause

QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
DNS_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{DNS_LABEL}(\.{DNS_LABEL})*"
ANNOTATIONS_MAX_BYTES = 256 * 1024

NAME_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@lru_cache(maxsize=100_000)
def qualified_name_complaint(key: str) -> str:
    """Why a string is no `prefix/name`; empty when it is one."""
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if "/" in prefix:
        return "a qualified name " + NAME_WORDS.removeprefix("name part ") + " with an optional DNS subdomain prefix"
    if slash and (len(prefix) > 253 or not re.fullmatch(SUBDOMAIN, prefix)):
        return f"prefix part {SUBDOMAIN_WORDS}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return "" if re.fullmatch(QUALIFIED, name) else NAME_WORDS


def label_key_complaint(key: str) -> str:
    words = qualified_name_complaint(key)
    return f'key: Invalid value: "{key}": {words}' if words else ""


@lru_cache(maxsize=100_000)
def label_value_complaint(value: str) -> str:
    if len(value) > 63:
        return f'value: Invalid value: "{value}": must be no more than 63 bytes'
    return "" if re.fullmatch(LABEL_VALUE, value) else f'value: Invalid value: "{value}": {VALUE_WORDS}'


def label_causes(labels: Mapping[str, Any], field: str = "metadata.labels") -> list[Cause]:
    causes = []
    for key, value in labels.items():
        words = qualified_name_complaint(key)
        if words:
            causes.append(Cause(field, f'Invalid value: "{key}": {words}'))
        complaint = label_value_complaint(str(value)).removeprefix("value: ")
        if complaint:
            causes.append(Cause(field, complaint))
    return causes


def annotation_causes(annotations: Mapping[str, Any]) -> list[Cause]:
    causes = []
    field = "metadata.annotations"
    for key in annotations:
        words = qualified_name_complaint(key.lower())
        if words:
            causes.append(Cause(field, f'Invalid value: "{key}": {words}'))
    size = sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())
    if size > ANNOTATIONS_MAX_BYTES:
        causes.append(
            Cause(field, f"Too long: may not be more than {ANNOTATIONS_MAX_BYTES} bytes", "FieldValueTooLong")
        )
    return causes


def name_causes(kind: Kind, name: str) -> list[Cause]:
    if kind.group == "rbac.authorization.k8s.io":  # RBAC allows path segments: `system:node`
        bad = name in {".", ".."} or "/" in name or "%" in name
        return [Cause("metadata.name", f"Invalid value: \"{name}\": may not contain '/'")] if bad else []
    if len(name) > 253 or not re.fullmatch(SUBDOMAIN, name):
        return [Cause("metadata.name", f'Invalid value: "{name}": {SUBDOMAIN_WORDS}')]
    return []


def metadata_causes(kind: Kind, metadata: Mapping[str, Any]) -> list[Cause]:
    return [
        *name_causes(kind, metadata.get("name", "")),
        *label_causes(metadata.get("labels") or {}),
        *annotation_causes(metadata.get("annotations") or {}),
    ]
