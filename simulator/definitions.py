"""A CustomResourceDefinition as the kinds that it makes the server serve."""

from typing import Any

from simulator.clock import stamp
from simulator.kinds import Kind


def kinds_of(definition: dict[str, Any]) -> list[Kind]:
    return [_kind(definition["spec"], version) for version in definition["spec"]["versions"] if version.get("served")]


def _kind(spec: dict[str, Any], version: dict[str, Any]) -> Kind:
    names, subresources = spec["names"], version.get("subresources") or {}
    return Kind(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        short=tuple(names.get("shortNames") or ()),
        has_status="status" in subresources,
        has_scale="scale" in subresources,
        has_generation=True,
        categories=tuple(names.get("categories") or ()),
        is_custom=True,
    )


def schema_of(definition: dict[str, Any], version: str) -> dict[str, Any]:
    """The structural schema of one version; empty when it names none."""
    for served in definition["spec"]["versions"]:
        if served["name"] == version:
            schema: dict[str, Any] = (served.get("schema") or {}).get("openAPIV3Schema") or {}
            return schema
    return {}


def established(definition: dict[str, Any], now: Any) -> dict[str, Any]:
    """The definition with the status that the API server's own controllers give it within moments."""
    spec = definition["spec"]
    names = {**spec["names"], "singular": spec["names"].get("singular") or spec["names"]["kind"].lower()}
    names.setdefault("listKind", f"{names['kind']}List")
    spec = {**spec, "names": names, "conversion": spec.get("conversion") or {"strategy": "None"}}
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    stored = [version["name"] for version in spec["versions"] if version.get("storage")]
    status = {"conditions": conditions, "acceptedNames": names, "storedVersions": stored}
    return {**definition, "spec": spec, "status": status}


def _condition(name: str, reason: str, message: str, now: Any) -> dict[str, str]:
    return {"type": name, "status": "True", "lastTransitionTime": stamp(now), "reason": reason, "message": message}
