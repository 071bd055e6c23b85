"""By which member the lists of Kubernetes' built-in types merge: `patchMergeKey` and `patchStrategy` of k8s.io/api."""

from collections.abc import Mapping

# Lists of plain values that merge as sets.
SETS = frozenset({"finalizers", "podCIDRs"})

# Field name -> merge key. Within the kinds served here a field name has one key wherever it appears, but for `ports`.
MERGE_KEYS: Mapping[str, str] = {
    "addresses": "type",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "hostAliases": "ip",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "podIPs": "ip",
    "hostIPs": "ip",
    "resourceClaims": "name",
    "schedulingGates": "name",
    "secrets": "name",
    "topologySpreadConstraints": "topologyKey",
    "volumeDevices": "devicePath",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
PORTS = {"Service": "port"}
CONTAINER_PORTS = "containerPort"

# A volume's source is a union: naming another member of it drops the old one.
RETAIN_KEYS = frozenset({"volumes", "strategy"})


def merge_key(kind: str, field: str) -> str | None:
    """None: the list is replaced as a whole, as taints and tolerations are."""
    if field == "ports":
        return PORTS.get(kind, CONTAINER_PORTS)
    return MERGE_KEYS.get(field)
