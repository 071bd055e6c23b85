"""The exclusion of a quarantined node from autoscalers, which remove empty nodes (Z17, lifecycle R19).

The previous values are on the row of the quarantine and, for `kubectl`, in an annotation of the node. NVSentinel keeps
watching a quarantined node: its exclusion would end its monitors there (Z18).
"""

from gpu.external_controllers import (
    NVSENTINEL,
    Metadata,
    as_before,
    before,
    excluded,
    external_controllers_of,
)
from gpu.labels import EXCLUDED_BY
from kube import client
from kube.structs import NodeSeen
from operations.models import Quarantine

AUTOSCALER_STATUS = (
    "kube-system",
    "cluster-autoscaler-status",
)  # kubernetes/autoscaler, FAQ: its status, written always


def autoscaler_runs(connection: client.Connection) -> bool:
    """Returns whether an autoscaler runs. If that read is forbidden, its marks on nodes still tell."""
    try:
        return client.get_config_map(connection, *AUTOSCALER_STATUS) is not None
    except client.Forbidden:
        return False


def record_values(row: Quarantine, connection: client.Connection) -> None:
    """Records the values before the exclusion, once. Nothing may be asked or recorded between a guard and its write.

    :raises Absent: when the node is gone
    """
    if row.excluded is not None:
        return
    observed, has_autoscaler = client.get_node(connection, row.node_name), autoscaler_runs(connection)
    here, taints = _metadata_of(observed), [taint.key for taint in observed.spec.taints or ()]
    controllers = external_controllers_of(here, taints, autoscaler_runs=has_autoscaler)
    row.excluded = before(here, [each for each in controllers if each != NVSENTINEL])
    Quarantine.objects.in_force().filter(pk=row.pk).update(excluded=row.excluded)


def exclusion_of(row: Quarantine, observed: NodeSeen) -> Metadata:
    """Returns the metadata that excludes the node. An exclusion of a plan stays with the plan."""
    here = _metadata_of(observed)
    if here.annotations.get(EXCLUDED_BY) not in (None, row.operation.mark):
        return Metadata()
    return excluded(here, row.excluded, row.operation.mark) if row.excluded else Metadata()


def inclusion_of(row: Quarantine, observed: NodeSeen) -> Metadata:
    """Returns the metadata that restores the previous values. Values that others changed stay."""
    here = _metadata_of(observed)
    is_ours = here.annotations.get(EXCLUDED_BY) in (None, row.operation.mark)
    return as_before(here, row.excluded) if row.excluded and is_ours else Metadata()


def _metadata_of(observed: NodeSeen) -> Metadata:
    return Metadata(observed.labels, observed.annotations)
