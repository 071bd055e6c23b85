"""Shared knowledge of kinds: nodes, namespaces and objects that make other objects worth storing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

SHARING, MIG = "sharing", "mig"  # purposes of the operator's ConfigMaps
USUAL_NAMESPACE = "gpu-operator"  # from the operator's documentation


def _matches_nothing(_: str) -> bool:
    return False


@dataclass
class WatchScope:
    gpu_nodes: set[str] = field(default_factory=set)
    operator_namespaces: set[str] = field(default_factory=set)
    policy_namespace: str = ""  # of the operator; blank: unknown
    configs: dict[str, str] = field(default_factory=dict)  # names of its ConfigMaps by purpose
    is_mirrored: Callable[[str], bool] = _matches_nothing  # tells whether a pod or owner of this uid has a row

    def follow_policy(self, row: Mapping[str, Any]) -> set[str]:
        """Updates the ConfigMap names from a ClusterPolicy's row. Returns the purposes that changed."""
        if row["state"] == "ignored":  # a second ClusterPolicy, which the operator ignores
            return set()
        named = {SHARING: row["sharing_config"], MIG: row["mig_config"]}
        changed = {purpose for purpose, name in named.items() if self.configs.get(purpose, "") != name}
        self.configs |= named
        return changed
