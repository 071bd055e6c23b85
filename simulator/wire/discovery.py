"""Which groups, versions and resources there are: group by group, and all at once (aggregated discovery)."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from simulator.kinds import READ_WRITE, Kind
from simulator.versions import KUBERNETES
from simulator.wire.answers import Answer, of_json

Obj = dict[str, Any]
VERSION = {
    "major": "1",
    "minor": KUBERNETES.split(".")[1],
    "gitVersion": KUBERNETES,
    "gitCommit": "0000000000000000000000000000000000000000",
    "gitTreeState": "clean",
    "buildDate": "2026-10-27T12:01:04Z",
    "goVersion": "go1.26.0",
    "compiler": "gc",
    "platform": "linux/amd64",
}
SELF_REVIEWS = (
    Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False),
    Kind("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False),
    Kind("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False),
)
SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}
SUBRESOURCE_VERBS = {
    "binding": ["create"],
    "eviction": ["create"],
    "log": ["get"],
    "proxy": ["create", "delete", "get", "patch", "update"],
    "finalize": ["update"],
}


def groups(kinds: Iterable[Kind]) -> dict[str, dict[str, list[Kind]]]:
    """Group -> version -> kinds, as the server lists them."""
    found: dict[str, dict[str, list[Kind]]] = defaultdict(lambda: defaultdict(list))
    for kind in (*kinds, *SELF_REVIEWS):
        found[kind.group][kind.version].append(kind)
    return found


def api_versions(host: str) -> Answer:
    address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
    return of_json({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": address})


def group_list(kinds: Iterable[Kind]) -> Answer:
    listed = [_group(name, list(versions)) for name, versions in groups(kinds).items() if name]
    return of_json({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


def one_group(kinds: Iterable[Kind], name: str) -> Answer | None:
    versions = groups(kinds).get(name)
    return of_json({"kind": "APIGroup", "apiVersion": "v1", **_group(name, list(versions))}) if versions else None


def _group(name: str, versions: list[str]) -> Obj:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def resource_list(kinds: Iterable[Kind], group: str, version: str) -> Answer | None:
    served = groups(kinds).get(group, {}).get(version)
    if not served:
        return None
    resources = [entry for kind in served for entry in _resources(kind)]
    group_version = f"{group}/{version}" if group else version
    return of_json(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources}
    )


def _resources(kind: Kind) -> list[Obj]:
    entry: Obj = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": verbs(kind),
    }
    if kind.short:
        entry["shortNames"] = list(kind.short)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    return [entry, *(_subresource(kind, name) for name in subresources(kind))]


def verbs(kind: Kind) -> list[str]:
    return ["create"] if kind in SELF_REVIEWS else list(READ_WRITE)


def subresources(kind: Kind) -> list[str]:
    return [*kind.subresources, *(["status"] if kind.has_status else []), *(["scale"] if kind.has_scale else [])]


def _subresource(kind: Kind, name: str) -> Obj:
    group, version, kind_name = SUBRESOURCE_KINDS.get(name, ("", "", kind.name))
    entry: Obj = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind_name,
        "verbs": SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"]),
    }
    if name in SUBRESOURCE_KINDS and version:
        entry |= {"group": group, "version": version}
    return entry


def wants_aggregated(accept: str) -> str:
    """The version of aggregated discovery that the client asks for first; empty when it asks for none."""
    for form in accept.replace(" ", "").split(","):
        parts = form.split(";")
        if "g=apidiscovery.k8s.io" in parts and "as=APIGroupDiscoveryList" in parts:
            return next((part.removeprefix("v=") for part in parts if part in {"v=v2", "v=v2beta1"}), "")
    return ""


def aggregated(kinds: Iterable[Kind], version: str, *, core: bool) -> Answer:
    items = [_aggregated_group(name, held) for name, held in groups(kinds).items() if (name == "") is core]
    body = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }
    content_type = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    return of_json(body, content_type=content_type)


def _aggregated_group(name: str, versions: dict[str, list[Kind]]) -> Obj:
    listed = [
        {"version": version, "resources": [_aggregated_resource(kind) for kind in kinds], "freshness": "Current"}
        for version, kinds in versions.items()
    ]
    return {"metadata": {"name": name, "creationTimestamp": None}, "versions": listed}


def _aggregated_resource(kind: Kind) -> Obj:
    entry: Obj = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.name},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": verbs(kind),
    }
    if kind.short:
        entry["shortNames"] = list(kind.short)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    below = [_aggregated_subresource(kind, name) for name in subresources(kind)]
    return {**entry, "subresources": below} if below else entry


def _aggregated_subresource(kind: Kind, name: str) -> Obj:
    group, version, kind_name = SUBRESOURCE_KINDS.get(name, (kind.group, kind.version, kind.name))
    allowed = SUBRESOURCE_VERBS.get(name, ["get", "patch", "update"])
    said = {"group": group, "version": version, "kind": kind_name}
    return {"subresource": name, "responseKind": said, "verbs": allowed}
