"""DaemonSets of the GPU stack, and the templates they have had."""

from typing import Any

from fleet.kube.structs import DaemonSetSeen, RevisionSeen
from fleet.operands import operand_of


def operand_row(seen: DaemonSetSeen) -> dict[str, Any] | None:
    """None: a DaemonSet that is no operand is not kept."""
    operand = operand_of(seen.pod_labels) or operand_of(seen.labels)
    if not operand:
        return None
    owner, status, template = seen.metadata.owner, seen.status, seen.template.pod
    return {
        "namespace": seen.namespace,
        "name": seen.name,
        "operand": operand,
        "owner_kind": owner.kind[:63] if owner else "",
        "owner_name": owner.name[:253] if owner else "",
        "owner_uid": owner.uid[:64] if owner else "",
        "node_selector": template.node_selector or {},
        "tolerations": [
            {
                "key": toleration.key or "",
                "operator": toleration.operator or "Equal",
                "value": toleration.value or "",
                "effect": toleration.effect or "",
            }
            for toleration in template.tolerations or ()
        ],
        "image": (template.containers[0].image or "")[:500] if template.containers else "",
        "generation": seen.metadata.generation,
        "observed_generation": status.observed_generation,
        "desired": status.desired_number_scheduled,
        "ready": status.number_ready,
        "updated": status.updated_number_scheduled,
    }


def revision_row(seen: RevisionSeen) -> dict[str, Any] | None:
    """None: not of an operand. A ControllerRevision carries the labels of the template it remembers."""
    if not operand_of(seen.labels) or not seen.daemonset_uid:
        return None
    return {
        "namespace": seen.namespace,
        "name": seen.name,
        "owner_uid": seen.daemonset_uid[:64],
        "revision": seen.revision,
        "revision_hash": seen.revision_hash[:63],
    }
