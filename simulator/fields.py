"""Field selectors: only the few fields that each kind offers, as the API server's conversion tables name them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from simulator.kinds import Kind
from simulator.refusals import bad_request

COMMON = ("metadata.name", "metadata.namespace")

# Defaults are what an unset Go field prints as.
OFFERED: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("", "pods"): {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.nominatedNodeName": "",
    },
    ("", "nodes"): {"spec.unschedulable": "false"},
    ("", "namespaces"): {"status.phase": ""},
    ("", "secrets"): {"type": ""},
    ("", "events"): {
        "involvedObject.kind": "",
        "involvedObject.namespace": "",
        "involvedObject.name": "",
        "involvedObject.uid": "",
        "involvedObject.apiVersion": "",
        "involvedObject.resourceVersion": "",
        "involvedObject.fieldPath": "",
        "reason": "",
        "reportingComponent": "",
        "source": "",
        "type": "",
    },
    ("batch", "jobs"): {"status.successful": "0"},
    ("apps", "replicasets"): {"status.replicas": "0"},
    ("resource.k8s.io", "resourceslices"): {"spec.nodeName": "", "spec.driver": ""},
}
PATHS = {"source": "source.component", "status.successful": "status.succeeded"}


@dataclass(frozen=True, slots=True)
class Term:
    path: str
    value: str
    is_equal: bool
    default: str

    def matches(self, obj: Mapping[str, Any]) -> bool:
        return (read(obj, self.path, self.default) == self.value) is self.is_equal


@dataclass(frozen=True, slots=True)
class FieldSelector:
    terms: tuple[Term, ...] = ()

    def matches(self, obj: Mapping[str, Any]) -> bool:
        return all(term.matches(obj) for term in self.terms)

    def exact(self, path: str) -> str | None:
        """The value that `path` must have, if the selector pins it."""
        return next((term.value for term in self.terms if term.path == path and term.is_equal), None)


def read(obj: Mapping[str, Any], path: str, default: str) -> str:
    found: Any = obj
    for part in path.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    if found is None:
        return default
    return str(found).lower() if isinstance(found, bool) else str(found)


def _split(text: str, separators: tuple[str, ...]) -> list[str]:
    """Cut at the first of `separators` that is not escaped with a backslash."""
    at = 0
    while at < len(text):
        if text[at] == "\\":
            at += 2
            continue
        for separator in separators:
            if text.startswith(separator, at):
                return [text[:at], separator, text[at + len(separator) :]]
        at += 1
    return [text]


def _unescape(value: str) -> str:
    return value.replace("\\,", ",").replace("\\=", "=").replace("\\\\", "\\")


def parse(kind: Kind, text: str) -> FieldSelector:
    """:raises Refused: 400 for a field that the kind does not offer."""
    if not text:
        return FieldSelector()
    offered = OFFERED.get(kind.shelf, {})
    terms, rest = [], text
    while rest:
        first, *tail = _split(rest, (",",))
        rest = tail[1] if tail else ""
        if first:
            terms.append(_term(kind, text, first, offered))
    return FieldSelector(tuple(terms))


def _term(kind: Kind, whole: str, text: str, offered: Mapping[str, str]) -> Term:
    parts = _split(text, ("!=", "==", "="))
    if len(parts) != 3:
        raise bad_request(f"invalid selector: '{whole}'; can't understand '{text}'")
    path, sign, value = parts
    if path not in offered and path not in COMMON:
        where = f'"{kind.group}/{kind.version}, Resource={kind.plural}"'
        raise bad_request(
            f'Unable to find {where} that match label selector "", field selector "{whole}": {_unsupported(kind, path)}'
        )
    return Term(PATHS.get(path, path), _unescape(value), sign != "!=", offered.get(path, ""))


def _unsupported(kind: Kind, path: str) -> str:
    if kind.shelf in {("", "pods"), ("", "nodes"), ("", "namespaces"), ("", "events"), ("", "secrets")}:
        return f"field label not supported: {path}"
    return f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"'
