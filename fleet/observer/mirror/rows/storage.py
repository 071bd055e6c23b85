"""Rows of volume claims, volumes, storage classes and CSINodes.

kubernetes: pkg/scheduler/framework/plugins/volumezone at 1.34 names the zone labels; values of several zones are joined
by `__`. A claim is bound once it has a volume and the annotation of the volume controller. Volumes of former in-tree
drivers name their CSI driver in an annotation (component-helpers, storage/volume/pv_helpers.go).
"""

from typing import Any

from fleet.observer.mirror.rows.node_terms import TERMS_AT_MOST, VALUES_AT_MOST, term_of
from fleet.observer.mirror.rows.text import INTEGER_MOST, KEY_AT_MOST, VALUE_AT_MOST, fitted
from kube.structs.storage import CsiNodeSeen, PersistentVolumeSeen, StorageClassSeen, VolumeClaimSeen

BOUND = "pv.kubernetes.io/bind-completed"
MIGRATED_TO = "pv.kubernetes.io/migrated-to"
DRIVERS_AT_MOST = 64  # of one node
WAITS = "WaitForFirstConsumer"
ZONE_LABELS = (
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
)  # fmt: skip


def volume_claim_row(seen: VolumeClaimSeen) -> dict[str, Any]:
    return {
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "volume": fitted(seen.spec.volume_name, 253) if BOUND in seen.annotations else "",
        "storage_class": fitted(seen.spec.storage_class_name, 253),
        "is_leaving": seen.metadata.deletion_timestamp is not None,
    }


def volume_row(seen: PersistentVolumeSeen) -> dict[str, Any] | None:
    """Returns the row. None: every node reaches the volume, and its class names the driver if it has any."""
    affinity = seen.spec.node_affinity
    terms = (affinity.required.node_selector_terms if affinity and affinity.required else None) or []
    zones = {
        key: [fitted(zone, VALUE_AT_MOST) for zone in seen.labels[key].split("__")[:VALUES_AT_MOST]]
        for key in ZONE_LABELS
        if key in seen.labels
    }
    driver = seen.spec.csi.driver if seen.spec.csi else seen.annotations.get(MIGRATED_TO, "")
    if not terms and not zones and (seen.spec.storage_class_name or not driver):
        return None
    return {
        "name": fitted(seen.name, 253),
        "node_affinity": [term_of(term) for term in terms[:TERMS_AT_MOST]],
        "zones": zones,
        "driver": fitted(driver, 253),
    }


def storage_class_row(seen: StorageClassSeen) -> dict[str, Any]:
    terms = [term.match_label_expressions or [] for term in (seen.allowed_topologies or [])[:TERMS_AT_MOST]]
    return {
        "name": fitted(seen.name, 253),
        "provisioner": fitted(seen.provisioner, 253),
        "waits_for_pod": seen.volume_binding_mode == WAITS,
        "topologies": [
            [
                {
                    "key": fitted(each.key, KEY_AT_MOST),
                    "operator": "In",
                    "values": [fitted(value, VALUE_AT_MOST) for value in (each.values or [])[:VALUES_AT_MOST]],
                }
                for each in term[:TERMS_AT_MOST]
            ]
            for term in terms
        ],
    }


def csi_node_row(seen: CsiNodeSeen) -> dict[str, Any] | None:
    """Returns the row. None: no driver of the node limits its volumes."""
    limits = {
        fitted(each.name, 253): max(0, min(each.allocatable.count, INTEGER_MOST))
        for each in (seen.spec.drivers or [])[:DRIVERS_AT_MOST]
        if each.allocatable and each.allocatable.count is not None
    }
    return {"name": fitted(seen.name, 253), "limits": limits} if limits else None
