"""Rows of Namespaces.

Conditions of a deletion: kubernetes, pkg/controller/namespace/deletion/status_condition_utils.go.
"""

from typing import Any

from fleet.observer.mirror.rows.text import fitted, fitted_instant, fitted_labels
from kube.structs import NamespaceSeen
from kube.structs.meta import find

# The most telling first.
HOLDING = (
    "NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure",
    "NamespaceDeletionDiscoveryFailure",
)  # fmt: skip


def namespace_row(seen: NamespaceSeen) -> dict[str, Any]:
    found = [find(seen.status.conditions if seen.status else None, kind) for kind in HOLDING]
    held_by = next((each.message for each in found if each is not None and each.status == "True"), "")
    deleted_at = fitted_instant(seen.metadata.deletion_timestamp)
    return {
        "name": fitted(seen.name, 253),
        "labels": fitted_labels(seen.labels),
        "deleted_at": deleted_at,
        "held_by": fitted(held_by, 500) if deleted_at else "",
    }
