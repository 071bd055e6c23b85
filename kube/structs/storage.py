"""PersistentVolumeClaims, PersistentVolumes, StorageClasses and CSINodes. From kubernetes/api, v1 and storage/v1
types.go.
"""

from kube.structs.meta import Seen, Struct
from kube.structs.node_affinity import NodeSelector


class VolumeClaimSpec(Struct, frozen=True):
    volume_name: str | None = ""
    storage_class_name: str | None = ""  # the API server sets the default class


class VolumeClaimSeen(Seen, frozen=True):
    spec: VolumeClaimSpec = VolumeClaimSpec()


class VolumeNodeAffinity(Struct, frozen=True):
    required: NodeSelector | None = None


class CsiSource(Struct, frozen=True):
    driver: str = ""


class VolumeSpec(Struct, frozen=True):
    csi: CsiSource | None = None
    storage_class_name: str | None = ""
    node_affinity: VolumeNodeAffinity | None = None


class PersistentVolumeSeen(Seen, frozen=True):
    spec: VolumeSpec = VolumeSpec()


class TopologyRequirement(Struct, frozen=True):
    key: str = ""
    values: list[str] | None = None


class TopologyTerm(Struct, frozen=True):
    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClassSeen(Seen, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = ""  # Immediate, WaitForFirstConsumer
    allowed_topologies: list[TopologyTerm] | None = None


class VolumeAmount(Struct, frozen=True):
    count: int | None = None  # None: the driver has no limit


class CsiDriverOfNode(Struct, frozen=True):
    name: str = ""
    allocatable: VolumeAmount | None = None


class CsiNodeSpec(Struct, frozen=True):
    drivers: list[CsiDriverOfNode] | None = None


class CsiNodeSeen(Seen, frozen=True):
    spec: CsiNodeSpec = CsiNodeSpec()
