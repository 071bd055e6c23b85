"""Rows of the GPU stack's DaemonSets and of their templates."""

from typing import Any

from fleet.observer.mirror.rows.image import image_of
from fleet.observer.mirror.rows.node_terms import TERMS_AT_MOST, TOLERATIONS_AT_MOST, term_of, toleration_of
from fleet.observer.mirror.rows.text import fitted, fitted_count, fitted_labels
from gpu.operands import operand_of
from kube.structs import DaemonSetSeen, RevisionSeen


def operand_row(seen: DaemonSetSeen) -> dict[str, Any] | None:
    """Returns the row. None: the DaemonSet is no operand."""
    operand = operand_of(seen.pod_labels, seen.name) or operand_of(seen.labels, seen.name)
    if not operand:
        return None
    owner, status, template = seen.metadata.owner, seen.status, seen.template.spec
    return {
        "namespace": fitted(seen.namespace, 63),
        "name": fitted(seen.name, 253),
        "operand": operand,
        "owner_kind": fitted(owner.kind, 63) if owner else "",
        "owner_name": fitted(owner.name, 253) if owner else "",
        "owner_uid": fitted(owner.uid, 64) if owner else "",
        "node_selector": fitted_labels(template.node_selector or {}),
        "node_affinity": [term_of(term) for term in template.terms[:TERMS_AT_MOST]],
        "tolerations": [toleration_of(toleration) for toleration in (template.tolerations or [])[:TOLERATIONS_AT_MOST]],
        "image": image_of(template),
        "generation": fitted_count(seen.metadata.generation),
        "observed_generation": fitted_count(status.observed_generation),
        "desired": fitted_count(status.desired_number_scheduled),
        "ready": fitted_count(status.number_ready),
        "updated": fitted_count(status.updated_number_scheduled),
    }


def revision_row(seen: RevisionSeen) -> dict[str, Any] | None:
    """Returns the row. None: not of an operand. A ControllerRevision has the labels of its template."""
    if not operand_of(seen.labels, seen.name) or not seen.daemonset_uid:
        return None
    return {
        "namespace": fitted(seen.namespace, 63),
        "name": fitted(seen.name, 253),
        "owner_uid": fitted(seen.daemonset_uid, 64),
        "revision": fitted_count(seen.revision),
        "revision_hash": fitted(seen.revision_hash, 63),
    }
