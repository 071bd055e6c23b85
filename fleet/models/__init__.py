from fleet.models.admission import LimitRange, PriorityClass, ResourceQuota
from fleet.models.bookmark import Bookmark, BookmarkState
from fleet.models.cluster import ApprovalRule, Cluster, ClusterMode
from fleet.models.cluster_event import ClusterEvent
from fleet.models.disruption_budget import DisruptionBudget
from fleet.models.driver_object import DriverObject
from fleet.models.dynamic_resources import DeviceClass, ResourceClaim, ResourceSlice
from fleet.models.exporter import ExporterReading, ExporterRound, ExportersState
from fleet.models.gone_node import GoneNode
from fleet.models.gpu import Gpu
from fleet.models.map_piece import MapPiece
from fleet.models.node import Node
from fleet.models.node_event import NodeEvent
from fleet.models.node_note import NodeNote
from fleet.models.node_sums import NodeSums
from fleet.models.observer import LostLease, Observer
from fleet.models.observing_worker import ObservingWorker
from fleet.models.operand import Operand, OperandRevision
from fleet.models.operator_config import OperatorConfig
from fleet.models.other_pod import OtherPod
from fleet.models.pod import Pod
from fleet.models.pod_placement import PodPlacement
from fleet.models.pool import Pool
from fleet.models.segment_sums import SegmentSums
from fleet.models.workload import Workload

__all__ = [
    "ApprovalRule",
    "Bookmark",
    "BookmarkState",
    "Cluster",
    "ClusterEvent",
    "ClusterMode",
    "DeviceClass",
    "DisruptionBudget",
    "DriverObject",
    "ExporterReading",
    "ExporterRound",
    "ExportersState",
    "GoneNode",
    "Gpu",
    "LimitRange",
    "LostLease",
    "MapPiece",
    "Node",
    "NodeEvent",
    "NodeNote",
    "NodeSums",
    "Observer",
    "ObservingWorker",
    "Operand",
    "OperandRevision",
    "OperatorConfig",
    "OtherPod",
    "Pod",
    "PodPlacement",
    "Pool",
    "PriorityClass",
    "ResourceClaim",
    "ResourceQuota",
    "ResourceSlice",
    "SegmentSums",
    "Workload",
]
