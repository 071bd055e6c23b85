"""The cluster as somebody with kubectl has it, and the log of what was asked of its API server."""

from datetime import datetime
from pathlib import Path
from typing import Any, Self

import httpx
import yaml

NODES = "/api/v1/nodes"
DRIVERS = "/apis/nvidia.com/v1alpha1/nvidiadrivers"
SKIP_LABEL = "nvidia.com/gpu-driver-upgrade.skip"
LOADED_VERSION_LABEL = "nvidia.com/cuda.driver-version.full"


class Cluster:
    """Asks the API server directly, with the credentials of a kubeconfig. Not through Quarterdeck: it checks on it."""

    def __init__(self, kubeconfig: Path, context: str, simulator_url: str) -> None:
        server, token = where(yaml.safe_load(kubeconfig.read_text()), context)
        headers = {"Authorization": f"Bearer {token}", "User-Agent": "smoke"}
        self._http = httpx.Client(base_url=server, headers=headers, timeout=15)
        self._simulator = httpx.Client(base_url=simulator_url, timeout=15)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._http.close()
        self._simulator.close()

    def items(self, path: str, **asked: str) -> list[dict[str, Any]]:
        """Return every object of a list."""
        return list(self._http.get(path, params=asked).raise_for_status().json()["items"])

    def get(self, path: str) -> dict[str, Any]:
        """Return one object."""
        return dict(self._http.get(path).raise_for_status().json())

    def merge(self, path: str, patch: dict[str, Any]) -> None:
        """Change an object by a merge patch."""
        headers = {"Content-Type": "application/merge-patch+json"}
        self._http.patch(path, json=patch, headers=headers).raise_for_status()

    def put_fault(self, **fault: str) -> None:
        """Turn a fault of the simulator on."""
        self._simulator.post("/simulator/faults", json=fault).raise_for_status()

    def requests(self, since: int = 0) -> list[dict[str, Any]]:
        """Return what has been asked of the API server, in order."""
        return list(self._simulator.get("/simulator/requests", params={"since": since}).raise_for_status().json())

    def releases(self, since: int = 0) -> list[dict[str, Any]]:
        """Return the requests that took the skip label from a node: each let one node change."""
        return [asked for asked in self.requests(since) if is_release(asked)]


def where(config: dict[str, Any], context: str) -> tuple[str, str]:
    """Return server and token of a context."""
    named = {entry["name"]: entry["context"] for entry in config["contexts"]}[context]
    cluster = {entry["name"]: entry["cluster"] for entry in config["clusters"]}[named["cluster"]]
    user = {entry["name"]: entry["user"] for entry in config["users"]}[named["user"]]
    return cluster["server"], user["token"]


def is_release(asked: dict[str, Any]) -> bool:
    """Say whether the request took the label away, by whichever kind of patch."""
    if asked["verb"] != "patch" or f"{NODES}/" not in asked["path"] or asked["code"] >= 300:
        return False
    body = asked["body"]
    if isinstance(body, list):
        label = SKIP_LABEL.replace("/", "~1")
        return any(step["op"] == "remove" and step["path"].endswith(label) for step in body)
    labels = (body.get("metadata") or {}).get("labels") or {}
    return SKIP_LABEL in labels and labels[SKIP_LABEL] is None


def at(asked: dict[str, Any]) -> datetime:
    """Return when the API server answered the request."""
    return datetime.fromisoformat(asked["at"])
