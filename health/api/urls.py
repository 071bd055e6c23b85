from django.urls import path

from health.api.acts import Assignments, Feedback, FindingAcknowledgements, Unassignments
from health.api.comparables import GpuComparable, NodeComparable
from health.api.exported_metrics import ExportedMetrics
from health.api.findings import FindingDetail, FindingGroups, FindingList, FindingTelemetry
from health.api.gpu import GpuDetail
from health.api.gpus import GpuHealthFile, GpuHealthList
from health.api.hours import GpuHours, NodeHours
from health.api.mutes import MuteDetail, MuteLifts, MuteList
from health.api.pod_checklist import PodChecklistDetail
from health.api.pod_log import PodLog
from health.api.rules import PoolLimitsList, PoolLimitsRemovals, RuleList, RuleShadowEnds, RuleShadowList
from health.api.saved_views import GpuViewDetail, GpuViewList
from health.api.shift_report import ShiftReport
from health.api.stacks import CompatibilityDetail, NodeChecklistDetail, NodeCompatibilityDetail, NodeStackDetail
from health.api.telemetry import (
    NodeTelemetryDetail,
    TelemetryAttemptList,
    TelemetrySourceDetail,
    TelemetrySourceList,
)
from health.api.telemetry_history import GpuTelemetryHistory, NodeTelemetryHistory
from health.api.telemetry_trials import TelemetryTrialDetail, TelemetryTrialList

urlpatterns = [
    path("clusters/<int:cluster_id>/compatibility", CompatibilityDetail.as_view(), name="api-cluster-compatibility"),
    path("clusters/<int:cluster_id>/exported-metrics", ExportedMetrics.as_view()),
    path(
        "clusters/<int:cluster_id>/telemetry-source",
        TelemetrySourceDetail.as_view(),
        name="api-cluster-telemetry-source",
    ),
    path("clusters/<int:cluster_id>/telemetry-source/attempts", TelemetryAttemptList.as_view()),
    path("clusters/<int:cluster_id>/telemetry-source/trials", TelemetryTrialList.as_view()),
    path("clusters/<int:cluster_id>/telemetry-source/trials/<int:trial_id>", TelemetryTrialDetail.as_view()),
    path("finding-groups", FindingGroups.as_view()),
    path("findings", FindingList.as_view()),
    path("findings/<int:finding_id>", FindingDetail.as_view(), name="api-finding"),
    path("findings/<int:finding_id>/acknowledgements", FindingAcknowledgements.as_view()),
    path("findings/<int:finding_id>/assignments", Assignments.as_view()),
    path("findings/<int:finding_id>/unassignments", Unassignments.as_view()),
    path("findings/<int:finding_id>/telemetry", FindingTelemetry.as_view(), name="api-finding-telemetry"),
    path("findings/<int:finding_id>/feedback", Feedback.as_view()),
    path("gpu-health", GpuHealthList.as_view(), name="api-gpu-health"),
    path("gpu-health.csv", GpuHealthFile.as_view()),
    path("gpu-views", GpuViewList.as_view()),
    path("gpu-views/<int:view_id>", GpuViewDetail.as_view()),
    path("mutes", MuteList.as_view()),
    path("mutes/<int:mute_id>", MuteDetail.as_view()),
    path("mutes/<int:mute_id>/lifts", MuteLifts.as_view()),
    path("nodes/<int:node_id>/hours", NodeHours.as_view()),
    path("nodes/<int:node_id>/compatibility", NodeCompatibilityDetail.as_view()),
    path("nodes/<int:node_id>/stack", NodeStackDetail.as_view(), name="api-node-stack"),
    path("nodes/<int:node_id>/checklist", NodeChecklistDetail.as_view()),
    path("pods/<int:pod_id>/checklist", PodChecklistDetail.as_view()),
    path("pods/<int:pod_id>/log", PodLog.as_view(), name="api-pod-log"),
    path("nodes/<int:node_id>/telemetry", NodeTelemetryDetail.as_view(), name="api-node-telemetry"),
    path("nodes/<int:node_id>/telemetry/history", NodeTelemetryHistory.as_view(), name="api-node-telemetry-history"),
    path("nodes/<int:node_id>/comparable", NodeComparable.as_view()),
    path("nodes/<int:node_id>/gpus/<int:index>", GpuDetail.as_view()),
    path("nodes/<int:node_id>/gpus/<int:index>/hours", GpuHours.as_view()),
    path(
        "nodes/<int:node_id>/gpus/<int:index>/telemetry/history",
        GpuTelemetryHistory.as_view(),
        name="api-gpu-telemetry-history",
    ),
    path("nodes/<int:node_id>/gpus/<int:index>/comparable", GpuComparable.as_view()),
    path("pool-limits/<int:limits_id>/removals", PoolLimitsRemovals.as_view()),
    path("pools/<int:pool_id>/limits", PoolLimitsList.as_view()),
    path("rules", RuleList.as_view()),
    path("rule-shadows", RuleShadowList.as_view()),
    path("rule-shadows/<int:shadow_id>/ends", RuleShadowEnds.as_view()),
    path("shift-report", ShiftReport.as_view()),
    path("telemetry-sources", TelemetrySourceList.as_view()),
]
