"""Rules about nodes, clusters and their observation: one pure file per rule. To add a rule, add its line here."""

from typing import Any

from health.rules.allocatable_below_expected import AllocatableBelowExpected
from health.rules.base import Rule
from health.rules.claims_waiting import ClaimsWaiting
from health.rules.cluster_not_seen import ClusterNotSeen
from health.rules.cluster_policy_stuck import ClusterPolicyStuck
from health.rules.cluster_unwatched import ClusterUnwatched
from health.rules.compute_domain_down import ComputeDomainDown
from health.rules.cordon_removed import CordonRemoved
from health.rules.cordon_stale import CordonStale
from health.rules.cpu_pods_on_gpu_node import CpuPodsOnGpuNode
from health.rules.credential_expires import CredentialExpires
from health.rules.device_unhealthy import DeviceUnhealthy
from health.rules.driver_conflict import DriversConflict
from health.rules.driver_object_stuck import DriverObjectStuck
from health.rules.exporter_silent import ExporterSilent
from health.rules.gang_across_domains import GangAcrossDomains
from health.rules.gpu_nodes_untainted import GpuNodesUntainted
from health.rules.gpus_never_offered import GpusNeverOffered
from health.rules.idle_gpus import IdleGpus
from health.rules.inference_on_time_slices import InferenceOnTimeSlices
from health.rules.labels_contradict import LabelsContradict
from health.rules.mig_change_stuck import MigChangeStuck
from health.rules.node_conditions import NodeConditions
from health.rules.node_flapping import NodeFlapping
from health.rules.node_not_ready import NodeNotReady
from health.rules.observer_behind import ObserverBehind
from health.rules.operand_down import OperandDown
from health.rules.operator_down import OperatorDown
from health.rules.paused_operands import PausedOperands
from health.rules.pods_failing import PodsFailing
from health.rules.pods_not_starting import PodsNotStarting
from health.rules.pods_pending_long import PodsPendingLong
from health.rules.pods_rejected import PodsRejected
from health.rules.series_explosion import SeriesExplosion
from health.rules.telemetry_silent import TelemetrySilent
from health.rules.unsupported_combination import UnsupportedCombination
from health.rules.upgrade_failed import UpgradeFailed
from health.rules.upgrade_queue_still import UpgradeQueueStill
from health.rules.upgrade_stuck import UpgradeStuck
from health.rules.versions_disagree import VersionsDisagree
from health.rules.workload_fails_here import WorkloadFailsHere
from health.rules.workload_fails_on_some import WorkloadFailsOnSome
from health.rules.xid_of_unknown_gpu import XidOfUnknownGpu

RULES: tuple[Rule[Any], ...] = (
    NodeNotReady(),
    NodeFlapping(),
    AllocatableBelowExpected(),
    DeviceUnhealthy(),
    InferenceOnTimeSlices(),
    MigChangeStuck(),
    GpusNeverOffered(),
    PodsFailing(),
    PodsNotStarting(),
    PodsPendingLong(),
    PodsRejected(),
    WorkloadFailsHere(),
    WorkloadFailsOnSome(),
    NodeConditions(),
    OperandDown(),
    ComputeDomainDown(),
    ExporterSilent(),
    XidOfUnknownGpu(),
    IdleGpus(),
    CpuPodsOnGpuNode(),
    GpuNodesUntainted(),
    GangAcrossDomains(),
    LabelsContradict(),
    UpgradeFailed(),
    UpgradeStuck(),
    PausedOperands(),
    CordonRemoved(),
    CordonStale(),
    VersionsDisagree(),
    ObserverBehind(),
    OperatorDown(),
    UpgradeQueueStill(),
    DriverObjectStuck(),
    DriversConflict(),
    ClusterPolicyStuck(),
    ClaimsWaiting(),
    UnsupportedCombination(),
    ClusterNotSeen(),
    CredentialExpires(),
    ClusterUnwatched(),
    TelemetrySilent(),
    SeriesExplosion(),
)
