"""What a URL of the Kubernetes API names."""

from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Target:
    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""
    """What follows a proxy subresource, with its leading slash."""


def parse(path: str) -> Target | None:
    """None where the path names no resource."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[0] == "api" and len(parts) >= 3:
        return _resource("", parts[1], parts[2:])
    if parts[0] == "apis" and len(parts) >= 4:
        return _resource(parts[1], parts[2], parts[3:])
    return None


def _resource(group: str, version: str, parts: list[str]) -> Target | None:
    namespace = ""
    # /namespaces/x/pods is about pods; /namespaces/x and /namespaces/x/status are about the namespace.
    if parts[0] == "namespaces" and len(parts) >= 3 and parts[2] not in {"status", "finalize"}:
        namespace, parts = parts[1], parts[2:]
    name = parts[1] if len(parts) > 1 else ""
    subresource = parts[2] if len(parts) > 2 else ""
    if len(parts) > 3 and subresource != "proxy":
        return None
    rest = "/" + "/".join(parts[3:]) if subresource == "proxy" else ""
    return Target(group, version, parts[0], namespace, name, subresource, rest)
