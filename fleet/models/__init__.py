from fleet.models.cluster import Cluster, Mode
from fleet.models.driver_object import DriverObject
from fleet.models.gpu import Gpu
from fleet.models.node import Node
from fleet.models.node_event import NodeEvent
from fleet.models.observer import Bookmark, BookmarkState, LostTurn, Observer
from fleet.models.operand import Operand, OperandRevision
from fleet.models.pod import Pod
from fleet.models.pool import Pool

__all__ = [
    "Bookmark",
    "BookmarkState",
    "Cluster",
    "DriverObject",
    "Gpu",
    "LostTurn",
    "Mode",
    "Node",
    "NodeEvent",
    "Observer",
    "Operand",
    "OperandRevision",
    "Pod",
    "Pool",
]
