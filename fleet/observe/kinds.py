"""The kinds that a window watches. Adding one is a line here, a resource in `fleet.kube` and a file in `rows`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db import models

from fleet.kube.resources import (
    CLUSTER_POLICIES,
    DAEMON_SETS,
    DEVICE_CLASSES,
    GPU_CLUSTERS,
    NODES,
    NVIDIA_DRIVERS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    REVISIONS,
    Resource,
)
from fleet.models import DeviceClass, DriverObject, Node, Operand, OperandRevision, Pod, ResourceClaim, ResourceSlice
from fleet.observe.rows.dra import claim_row, class_row, slice_row
from fleet.observe.rows.driver_object import driver_object_row
from fleet.observe.rows.node import node_row
from fleet.observe.rows.operand import operand_row, revision_row
from fleet.observe.rows.pod import Places, is_kept, pod_row

Row = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    resource: Resource[Any]
    model: Any  # a model class with `cluster` and `uid`
    row: Callable[[Any, Places], Row | None]  # None: an object we do not keep
    after: tuple[str, ...] = ()  # kinds whose list must be complete first: they say what is kept of this one
    shares: tuple[tuple[str, str], ...] = ()  # the rows of the model that are this kind's, where two share one

    @property
    def name(self) -> str:
        return self.resource.name

    def rows_of(self, cluster_id: int) -> models.QuerySet[Any]:
        return self.model.objects.filter(cluster_id=cluster_id, **dict(self.shares))


def _kept_pod(seen: Any, places: Places) -> Row | None:
    return pod_row(seen) if is_kept(seen, places) else None


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(NODES, Node, lambda seen, _: node_row(seen)),
        Kind(PODS, Pod, _kept_pod, after=(NODES.name, DAEMON_SETS.name)),
        Kind(DAEMON_SETS, Operand, lambda seen, _: operand_row(seen)),
        Kind(REVISIONS, OperandRevision, lambda seen, _: revision_row(seen)),
        Kind(
            NVIDIA_DRIVERS,
            DriverObject,
            lambda seen, _: driver_object_row(seen),
            shares=(("kind", "NVIDIADriver"),),
        ),
        Kind(
            CLUSTER_POLICIES,
            DriverObject,
            lambda seen, _: driver_object_row(seen),
            shares=(("kind", "ClusterPolicy"),),
        ),
        Kind(
            GPU_CLUSTERS,
            DriverObject,
            lambda seen, _: driver_object_row(seen),
            shares=(("kind", "GPUCluster"),),
        ),
        Kind(RESOURCE_SLICES, ResourceSlice, lambda seen, _: slice_row(seen)),
        Kind(RESOURCE_CLAIMS, ResourceClaim, lambda seen, _: claim_row(seen)),
        Kind(DEVICE_CLASSES, DeviceClass, lambda seen, _: class_row(seen)),
    )
}
