"""The cluster as somebody with kubectl has it: any API server that the kubeconfig names."""

import json
from pathlib import Path
from typing import Any, Self

from kubernetes import client, config

SKIP_LABEL = "nvidia.com/gpu-driver-upgrade.skip"
LOADED_VERSION_LABEL = "nvidia.com/cuda.driver-version.full"
DRIVERS = ("nvidia.com", "v1alpha1", "nvidiadrivers")
TIMEOUT_S = 15
Object = dict[str, Any]


class Cluster:
    """Asks the API server directly, not through Quarterdeck: it checks on it."""

    def __init__(self, kubeconfig: Path, context: str) -> None:
        self._client = config.new_client_from_config(config_file=str(kubeconfig), context=context)
        self._core = client.CoreV1Api(self._client)
        self._custom = client.CustomObjectsApi(self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def nodes(self, selector: str = "") -> list[Object]:
        """Return the nodes that the label selector picks."""
        answer: Any = self._core.list_node(label_selector=selector, _preload_content=False, _request_timeout=TIMEOUT_S)
        return list(json.loads(answer.data)["items"])

    def patch_node(self, name: str, patch: Object) -> None:
        """Change a node by a merge patch."""
        self._core.patch_node(
            name,
            patch,
            _content_type="application/merge-patch+json",
            _preload_content=False,
            _request_timeout=TIMEOUT_S,
        )

    def wanted_version(self, driver: str) -> str:
        """Return the version that a NVIDIADriver asks for."""
        found: Any = self._custom.get_cluster_custom_object(*DRIVERS, driver, _request_timeout=TIMEOUT_S)
        return str(found["spec"]["version"])

    def loaded_versions(self, sku: str) -> dict[str, str]:
        """Return the loaded driver by node, of all nodes of a SKU."""
        labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in self.nodes()}
        return {name: found.get(LOADED_VERSION_LABEL, "none") for name, found in labels.items() if f"-{sku}-" in name}

    def held_nodes(self) -> list[str]:
        """Return the nodes with the label that keeps the operator away."""
        return sorted(node["metadata"]["name"] for node in self.nodes(f"{SKIP_LABEL}=true"))
