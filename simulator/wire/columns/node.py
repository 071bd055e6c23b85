from datetime import datetime
from typing import Any

from simulator.wire.columns.column import AGE, NAME, Column, reading

Obj = dict[str, Any]
ROLE_PREFIX = "node-role.kubernetes.io/"


def status(node: Obj, _now: datetime) -> str:
    conditions = (node.get("status") or {}).get("conditions") or []
    ready = next((condition for condition in conditions if condition["type"] == "Ready"), None)
    words = ["Unknown" if ready is None else "Ready" if ready["status"] == "True" else "NotReady"]
    if node["spec"].get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def roles(node: Obj, _now: datetime) -> str:
    labels = node["metadata"].get("labels") or {}
    found = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    found |= {labels["kubernetes.io/role"]} if labels.get("kubernetes.io/role") else set()
    return ",".join(sorted(found - {""})) or "<none>"


def _address(wanted: str) -> Any:
    def cell(node: Obj, _now: datetime) -> str:
        addresses = (node.get("status") or {}).get("addresses") or []
        return next((address["address"] for address in addresses if address["type"] == wanted), "<none>")

    return cell


NODE_COLUMNS = (
    NAME,
    Column("Status", status, description="The status of the node"),
    Column("Roles", roles, description="The roles of the node"),
    AGE,
    Column("Version", reading("status.nodeInfo.kubeletVersion"), description="Kubelet Version reported by the node."),
    Column("Internal-IP", _address("InternalIP"), priority=1),
    Column("External-IP", _address("ExternalIP"), priority=1),
    Column("OS-Image", reading("status.nodeInfo.osImage", "<unknown>"), priority=1),
    Column("Kernel-Version", reading("status.nodeInfo.kernelVersion", "<unknown>"), priority=1),
    Column("Container-Runtime", reading("status.nodeInfo.containerRuntimeVersion", "<unknown>"), priority=1),
)
