"""What the kinds tell each other: which nodes, namespaces and objects make another object worth keeping."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

SHARING, MIG = "sharing", "mig"  # what a ConfigMap of the operator is for
USUAL_NAMESPACE = "gpu-operator"  # of the operator, as its documentation installs it


def _nothing(_: str) -> bool:
    return False


@dataclass
class WatchScope:
    gpu_nodes: set[str] = field(default_factory=set)
    operator_namespaces: set[str] = field(default_factory=set)
    policy_namespace: str = ""  # where the operator itself runs; blank: nothing said so yet
    configs: dict[str, str] = field(default_factory=dict)  # names of ConfigMaps there, by what they are for
    is_mirrored: Callable[[str], bool] = _nothing  # whether there is a row of this uid, of a pod or of an owner

    def follow_policy(self, row: Mapping[str, Any]) -> set[str]:
        """Take from a ClusterPolicy's row which ConfigMaps it names; of what another one is named, or none, now."""
        if row["state"] == "ignored":  # a second ClusterPolicy: the operator does not look at it
            return set()
        named = {SHARING: row["sharing_config"], MIG: row["mig_config"]}
        changed = {purpose for purpose, name in named.items() if self.configs.get(purpose, "") != name}
        self.configs |= named
        return changed
