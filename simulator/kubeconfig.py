"""The file by which kubectl and the Python client find the simulator."""

import base64
import json
from pathlib import Path
from typing import Any

CLUSTER = "simulator"


class ForeignFile(ValueError):
    """There is a file that no simulator wrote: somebody's way into a cluster of theirs."""


def write(path: Path, url: str, tokens: dict[str, str], authority: bytes | None) -> None:
    """One context for each token, named alike; the first is the current one. JSON is YAML.

    :raises ForeignFile: and it stays as it is
    """
    if path.exists() and not _is_ours(path):
        raise ForeignFile(f"{path} is there, and no simulator wrote it: name another file")
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": CLUSTER, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}} for name, token in tokens.items()],
        "contexts": [{"name": name, "context": {"cluster": CLUSTER, "user": name}} for name in tokens],
        "current-context": next(iter(tokens)),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2) + "\n")


def _is_ours(path: Path) -> bool:
    try:
        found = json.loads(path.read_bytes() or b"{}")
        return found == {} or {each["name"] for each in found["clusters"]} == {CLUSTER}
    except (OSError, ValueError, TypeError, KeyError):
        return False
