from fleet.models.autoscalers import ScalingObject
from fleet.models.bookmark import Bookmark, BookmarkState
from fleet.models.cluster import ApprovalRule, Cluster, ClusterMode
from fleet.models.domain_event import DomainEvent
from fleet.models.driver_object import DriverObject
from fleet.models.dynamic_resources import DeviceClass, ResourceClaim, ResourceSlice
from fleet.models.exporter import ExporterReading, ExporterRound, ExportersState
from fleet.models.gpu import Gpu
from fleet.models.map_chunk import MapChunk
from fleet.models.namespaces import ClusterNamespace
from fleet.models.node import Node
from fleet.models.node_event import GoneNode, NodeEvent, NodeNote
from fleet.models.observer import LostLease, Observer, ObservingWorker
from fleet.models.pod import OtherPod, Pod, PodPlacement
from fleet.models.pool import Pool
from fleet.models.queues import QueuedWorkload, QueueSystem, WorkloadQueue
from fleet.models.segment_sums import SegmentSums
from fleet.models.storage import CsiNode, PersistentVolume, PersistentVolumeClaim, StorageClass
from fleet.models.sums import NodeSums
from fleet.models.topology import NodeTopology
from fleet.models.workload import (
    ClusterEvent,
    DisruptionBudget,
    LimitRange,
    Operand,
    OperandRevision,
    OperatorConfig,
    PriorityClass,
    ResourceQuota,
    Workload,
)
